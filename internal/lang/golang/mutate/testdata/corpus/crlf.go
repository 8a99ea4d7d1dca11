package corpus

func windows(a int) int {
	if a > 1 { // carriage returns
		return a *
			2
	}
	return a
}
