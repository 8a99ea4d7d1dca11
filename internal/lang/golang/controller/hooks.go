package controller

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// hook is one place in package testing where the controller is called.
type hook struct {
	name   string
	insert func(*pkg) error
}

// hooks lists every place. The texts are inserted without a newline, so that
// lines keep their numbers.
var hooks = []hook{
	{"common.proveto", insertField},
	{"common.Fail", first("common", "Fail", "provetoFail(%s);")},
	{"common.log", insertLog},
	{"T.Parallel", insertParallel},
	{"tRunner", insertRunner("tRunner")},
	{"fRunner", insertRunner("fRunner")},
	{"T.report", first("T", "report", "provetoEnd(&%s.common);")},
	{"F.report", first("F", "report", "provetoEnd(&%s.common);")},
	{"M.Run", first("M", "Run", "_ = %s; provetoRun(); defer provetoRan();")},
	{"matcher.fullName", insertChoice},
	{"runExample", insertExample},
	{"InternalExample.processRunResult", insertExampleResult},
}

// first inserts a call at the start of a method; %s in text is its receiver.
func first(receiver, name, text string) func(*pkg) error {
	return func(p *pkg) error {
		fd, err := p.function(receiver, name)
		if err != nil {
			return err
		}
		if len(fd.Recv.List[0].Names) != 1 {
			return errors.New("the receiver has no name")
		}
		p.insert(fd.Body.Lbrace+1, fmt.Sprintf(" "+text, fd.Recv.List[0].Names[0].Name))
		return nil
	}
}

// insertField gives every test a place for the controller's state.
func insertField(p *pkg) error {
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			gd, ok := d.(*ast.GenDecl)
			if !ok || gd.Tok != token.TYPE {
				continue
			}
			for _, s := range gd.Specs {
				ts := s.(*ast.TypeSpec)
				if st, ok := ts.Type.(*ast.StructType); ok && ts.Name.Name == "common" {
					p.insert(st.Fields.Opening+1, " proveto provetoCommon;")
					return nil
				}
			}
		}
	}
	return errors.New("no struct common")
}

// insertLog hooks common.log, whose first parameter is the text.
func insertLog(p *pkg) error {
	fd, err := p.function("common", "log")
	if err != nil {
		return err
	}
	names := params(fd.Type)
	if len(names) == 0 || len(fd.Recv.List[0].Names) != 1 {
		return errors.New("common.log has no parameter")
	}
	p.insert(fd.Body.Lbrace+1, fmt.Sprintf(" provetoLog(%s, %s);", fd.Recv.List[0].Names[0].Name, names[0]))
	return nil
}

// insertParallel hooks the wait of a parallel test: from the signal that
// releases the caller to the return of waitParallel.
func insertParallel(p *pkg) error {
	fd, err := p.function("T", "Parallel")
	if err != nil {
		return err
	}
	t := fd.Recv.List[0].Names[0].Name
	var pause, resume int
	for _, s := range fd.Body.List {
		switch s := s.(type) {
		case *ast.SendStmt:
			if types.ExprString(s.Chan) == t+".signal" {
				p.insert(s.Pos(), fmt.Sprintf("provetoPause(&%s.common); ", t))
				pause++
			}
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && selected(call.Fun) == "waitParallel" {
				p.insert(s.End(), fmt.Sprintf("; provetoResume(&%s.common)", t))
				resume++
			}
		}
	}
	if pause != 1 || resume != 1 {
		return fmt.Errorf("%d signals and %d waits, want one each", pause, resume)
	}
	return nil
}

// insertRunner hooks tRunner and fRunner: their start, the call of the test
// function (a failure is planted before it), and the closure through which a
// panicked test dies.
func insertRunner(name string) func(*pkg) error {
	return func(p *pkg) error {
		fd, err := p.function("", name)
		if err != nil {
			return err
		}
		names := params(fd.Type)
		if len(names) != 2 {
			return fmt.Errorf("%d parameters, want 2", len(names))
		}
		t, fn := names[0], names[1]
		p.insert(fd.Body.Lbrace+1, fmt.Sprintf(" provetoBegin(&%s.common);", t))
		var calls, panics int
		for _, s := range fd.Body.List {
			es, ok := s.(*ast.ExprStmt)
			if !ok {
				continue
			}
			if call, ok := es.X.(*ast.CallExpr); ok && types.ExprString(call.Fun) == fn {
				p.insert(s.Pos(), fmt.Sprintf("provetoPlant(&%s.common); ", t))
				calls++
			}
		}
		ast.Inspect(fd.Body, func(n ast.Node) bool {
			as, ok := n.(*ast.AssignStmt)
			if !ok || len(as.Lhs) != 1 || types.ExprString(as.Lhs[0]) != "doPanic" {
				return true
			}
			lit, ok := as.Rhs[0].(*ast.FuncLit)
			if !ok {
				return true
			}
			if names := params(lit.Type); len(names) == 1 {
				p.insert(lit.Body.Lbrace+1, fmt.Sprintf(" provetoPanic(&%s.common, %s);", t, names[0]))
				panics++
			}
			return true
		})
		if calls != 1 || panics != 1 {
			return fmt.Errorf("%d calls of the test and %d panic closures, want one each", calls, panics)
		}
		return nil
	}
}

// insertChoice hooks the choice of tests by name, after the name was made unique
// and before the patterns of the command line are tried.
func insertChoice(p *pkg) error {
	fd, err := p.function("matcher", "fullName")
	if err != nil {
		return err
	}
	for _, s := range fd.Body.List {
		if as, ok := s.(*ast.AssignStmt); ok && types.ExprString(as.Lhs[0]) == "elem" {
			p.insert(s.Pos(), "if ok, partial, told := provetoChosen(name); told { return name, ok, partial }; ")
			return nil
		}
	}
	return errors.New("the name is not split into elements")
}

func insertExample(p *pkg) error {
	fd, err := p.function("", "runExample")
	if err != nil {
		return err
	}
	names := params(fd.Type)
	if len(names) != 1 {
		return fmt.Errorf("%d parameters, want 1", len(names))
	}
	p.insert(fd.Body.Lbrace+1, fmt.Sprintf(" provetoExampleBegin(&%s);", names[0]))
	return nil
}

// insertExampleResult hooks the verdict on an example's output.
func insertExampleResult(p *pkg) error {
	fd, err := p.function("InternalExample", "processRunResult")
	if err != nil {
		return err
	}
	in := params(fd.Type)
	if len(in) != 4 || fd.Type.Results == nil || len(fd.Type.Results.List) != 1 || len(fd.Type.Results.List[0].Names) != 1 {
		return errors.New("parameters or result are not as known")
	}
	eg, passed := fd.Recv.List[0].Names[0].Name, fd.Type.Results.List[0].Names[0].Name
	p.insert(fd.Body.Lbrace+1, fmt.Sprintf(" defer func() { %s = provetoExampleEnd(%s, %s, %s, %s, %s, %s) }();",
		passed, eg, in[0], in[1], passed, in[2], in[3]))
	return nil
}

// params lists the names of a function's parameters.
func params(t *ast.FuncType) []string {
	var out []string
	for _, f := range t.Params.List {
		for _, n := range f.Names {
			out = append(out, n.Name)
		}
	}
	return out
}

// selected is the last name of a selector expression.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}
