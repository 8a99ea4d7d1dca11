package sandbox

// helper runs the test binary as the command of a test.
func helper(args []string) (code int, handled bool) {
	return 0, false
}
