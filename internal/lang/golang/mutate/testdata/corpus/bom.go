//go:build !never

package corpus

//line other.y:100
func marked(a int) (s string) {
	if a > 1 {
		s = "more"
	}
	return s
}

func last(a int) int { return a - 1 } // no line end