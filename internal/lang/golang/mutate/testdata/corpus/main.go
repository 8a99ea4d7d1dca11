// Package corpus holds one small function for every shape of code that probes
// are written into. A line with a want comment names the operators of all
// probes on that line, in the order of their columns.
package corpus

import "fmt"

// out collects what the cases give.
var out []string

// caught is what a case panicked with.
func try(name string, f func() interface{}) {
	defer func() {
		if r := recover(); r != nil {
			out = append(out, fmt.Sprintf("%s panics: %v", name, r))
		}
	}()
	out = append(out, fmt.Sprintf("%s = %#v", name, f()))
}

// Main runs every case and prints what it gave.
func Main() {
	values()
	operators()
	flow()
	generics()
	odd()
	for _, line := range out {
		fmt.Println(line)
	}
}
