package source

import (
	"go/ast"
	"path"
	"strings"
	"unicode"
)

// symbolID is the SCIP name of a function: scheme, manager, module, a dot for
// the version, and the descriptors: a namespace for each directory below the
// module, the receiver's type, the method. mark tells apart what has the same
// name: external tests, several init, blank functions.
func symbolID(module, dir, recv, name, mark string) string {
	var b strings.Builder
	b.WriteString("scip-go gomod ")
	b.WriteString(strings.ReplaceAll(module, " ", "  "))
	b.WriteString(" . ")
	if dir != "." && dir != "" {
		for part := range strings.SplitSeq(dir, "/") {
			b.WriteString(scipName(part) + "/")
		}
	}
	if recv != "" {
		b.WriteString(scipName(recv) + "#")
	}
	b.WriteString(scipName(name) + "(" + mark + ").")
	return b.String()
}

// scipName escapes what is no simple identifier of SCIP.
func scipName(s string) string {
	if s != "" && simpleMark(s) == s {
		return s
	}
	return "`" + strings.ReplaceAll(s, "`", "``") + "`"
}

// simpleMark replaces everything that a simple identifier of SCIP cannot have.
func simpleMark(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '+', r == '-', r == '$':
			return r
		}
		return '_'
	}, s)
}

// receiver is the name of the receiver's type and whether it is a pointer;
// empty for functions.
func receiver(d *ast.FuncDecl) (name string, pointer bool) {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return "", false
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.ParenExpr:
			t = x.X
		case *ast.StarExpr:
			t, pointer = x.X, true
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name, pointer
		default:
			return "_", pointer // does not type-check
		}
	}
}

// isTestName is the go command's rule: Test, or Test and a rune that is not
// lower case.
func isTestName(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return false
	}
	for _, r := range rest {
		return !unicode.IsLower(r)
	}
	return true
}

// dirOf is the directory of an import path below its module; "." for the root.
func dirOf(module, pkgPath string) string {
	if pkgPath == module {
		return "."
	}
	if rest, ok := strings.CutPrefix(pkgPath, module+"/"); ok {
		return rest
	}
	return path.Clean(pkgPath)
}
