package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one fault. It is known by what stands there, not by a line number, so that it outlives edits elsewhere.
type mutant struct {
	Package  string `json:"package"`
	Function string `json:"function"`
	Line     string `json:"line"`     // as it stands, trimmed
	Mutation string `json:"mutation"` // what is done to it
	place    string // file:line, for people
}

func (m mutant) String() string {
	return fmt.Sprintf("%s: %s\n  %s\n  %s", m.place, m.Function, m.Line, m.Mutation)
}

// insertion is text that is put into a file. What closes comes before what opens, and closes from the inside out.
type insertion struct {
	at, order int
	text      string
}

// schema writes the mutants of a file into it, each behind a question whether it is the one to be tried.
type schema struct {
	source     string
	tokens     *token.File
	pkg, name  string
	function   string
	results    []*ast.FieldList // of the functions that the walk is in
	stack      []ast.Node
	insertions []insertion
	first      int // number of the first mutant
	all        []mutant
}

// instrument returns the file with its mutants in it, numbered from first. No line moves.
func instrument(pkg, name, source string, first int) (string, []mutant, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	s := &schema{source: source, tokens: set.File(file.Pos()), pkg: pkg, name: name, first: first}
	for _, declared := range file.Decls {
		if function, is := declared.(*ast.FuncDecl); is && function.Body != nil {
			s.function = function.Name.Name
			if function.Recv != nil {
				s.function = s.text(function.Recv.List[0].Type) + "." + s.function
			}
			ast.Inspect(function, s.visit)
		}
	}
	slices.SortStableFunc(s.insertions, func(a, b insertion) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
	var out strings.Builder
	at := 0
	for _, i := range s.insertions {
		out.WriteString(source[at:i.at])
		out.WriteString(i.text)
		at = i.at
	}
	out.WriteString(source[at:])
	return out.String(), s.all, nil
}

func (s *schema) offset(p token.Pos) int     { return s.tokens.Offset(p) }
func (s *schema) text(n ast.Node) string     { return s.source[s.offset(n.Pos()):s.offset(n.End())] }
func (s *schema) flat(n ast.Node) string     { return strings.Join(strings.Fields(s.text(n)), " ") }
func (s *schema) open(p token.Pos, t string) { s.insert(s.offset(p), len(s.insertions), t) }
func (s *schema) close(p token.Pos, t string) {
	s.insert(s.offset(p), -1-len(s.insertions), t)
}
func (s *schema) insert(at, order int, t string) {
	s.insertions = append(s.insertions, insertion{at, order, t})
}

// on makes a mutant, and returns the question for it.
func (s *schema) on(n ast.Node, mutation string) string {
	line := s.tokens.Line(n.Pos())
	from := s.offset(s.tokens.LineStart(line))
	text, _, _ := strings.Cut(s.source[from:], "\n")
	s.all = append(s.all, mutant{Package: s.pkg, Function: s.function, Line: strings.TrimSpace(text), Mutation: mutation,
		place: fmt.Sprintf("%s:%d", s.name, line)})
	return fmt.Sprintf("mutantOn(%d)", s.first+len(s.all)-1)
}

func (s *schema) visit(n ast.Node) bool {
	if n == nil {
		switch s.stack[len(s.stack)-1].(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			s.results = s.results[:len(s.results)-1]
		}
		s.stack = s.stack[:len(s.stack)-1]
		return true
	}
	s.stack = append(s.stack, n)
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.enter(n.Type, n.Body)
	case *ast.FuncLit:
		s.enter(n.Type, n.Body)
	case *ast.IfStmt:
		s.condition(n.Cond, true)
	case *ast.ForStmt:
		if n.Cond != nil {
			s.condition(n.Cond, false)
		}
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, condition := range clause.(*ast.CaseClause).List {
				if n.Tag == nil {
					s.condition(condition, true)
				}
			}
		}
	case *ast.CaseClause:
		s.emptied(n)
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			s.open(n.Pos(), "(")
			s.close(n.End(), " != "+s.on(n, "without the ! of "+s.flat(n))+")")
		}
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.ReturnStmt:
		s.returns(n)
	}
	return true
}

// enter lets a body end where the compiler would miss a return once a statement may not run.
func (s *schema) enter(of *ast.FuncType, body *ast.BlockStmt) {
	s.results = append(s.results, of.Results)
	if of.Results != nil {
		s.open(body.Rbrace, "; panic(\"a mutant fell out of its function\") ")
	}
}

// condition holds always, or never. A loop that never ends says nothing.
func (s *schema) condition(e ast.Expr, always bool) {
	s.open(e.Pos(), "((")
	text := ""
	if always {
		text = " || " + s.on(e, "always: "+s.flat(e))
	}
	s.close(e.End(), text+") && !"+s.on(e, "never: "+s.flat(e))+")")
}

func (s *schema) binary(e *ast.BinaryExpr) {
	switch e.Op {
	case token.LAND, token.LOR:
		for _, operand := range []ast.Expr{e.X, e.Y} {
			s.open(operand.Pos(), "((")
			if e.Op == token.LAND {
				s.close(operand.End(), ") || "+s.on(operand, "without the condition "+s.flat(operand))+")")
			} else {
				s.close(operand.End(), ") && !"+s.on(operand, "without the alternative "+s.flat(operand))+")")
			}
		}
	case token.LSS, token.GTR:
		s.open(e.Pos(), "(")
		s.close(e.End(), " || "+s.on(e, "or equal: "+s.flat(e))+" && "+s.text(e.X)+" == "+s.text(e.Y)+")")
	case token.LEQ, token.GEQ:
		s.open(e.Pos(), "(")
		s.close(e.End(), " && !("+s.on(e, "not equal: "+s.flat(e))+" && "+s.text(e.X)+" == "+s.text(e.Y)+"))")
	case token.EQL, token.NEQ:
		if s.isOperandOrCondition() {
			return // always, never and without ask more
		}
		s.open(e.Pos(), "((")
		s.close(e.End(), ") != "+s.on(e, "the opposite of "+s.flat(e))+")")
	}
}

func (s *schema) isOperandOrCondition() bool {
	switch parent := s.stack[len(s.stack)-2].(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause:
		return true
	case *ast.BinaryExpr:
		return parent.Op == token.LAND || parent.Op == token.LOR
	}
	return false
}

// emptied is a case in which nothing is done.
func (s *schema) emptied(c *ast.CaseClause) {
	if len(c.Body) == 0 {
		return
	}
	if last, is := c.Body[len(c.Body)-1].(*ast.BranchStmt); is && last.Tok == token.FALLTHROUGH {
		return
	}
	s.open(c.Body[0].Pos(), "if "+s.on(c, "does nothing in "+strings.TrimSuffix(strings.TrimSpace(s.source[s.offset(c.Pos()):s.offset(c.Colon)]), ":"))+" { break }; ")
}

// statements go, one at a time.
func (s *schema) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch of := statement.(type) {
		case *ast.ExprStmt:
			if call, is := of.X.(*ast.CallExpr); is {
				if name, is := call.Fun.(*ast.Ident); is && name.Name == "panic" {
					continue
				}
			}
		case *ast.AssignStmt:
			if of.Tok == token.DEFINE || s.isBlank(of) {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		case *ast.BranchStmt:
			if of.Tok != token.CONTINUE && of.Tok != token.BREAK {
				continue
			}
		default:
			continue
		}
		s.open(statement.Pos(), "if !"+s.on(statement, "without "+shortened(s.flat(statement)))+" { ")
		s.close(statement.End(), " }")
	}
}

func (s *schema) isBlank(a *ast.AssignStmt) bool {
	for _, to := range a.Lhs {
		if name, is := to.(*ast.Ident); !is || name.Name != "_" {
			return false
		}
	}
	return true
}

// returns gives the zero value for each result that isn't written as one.
func (s *schema) returns(r *ast.ReturnStmt) {
	results := s.results[len(s.results)-1]
	if results == nil {
		return
	}
	var types []string
	for _, field := range results.List {
		for range max(1, len(field.Names)) {
			types = append(types, s.text(field.Type))
		}
	}
	if len(types) != len(r.Results) {
		return
	}
	for i, result := range r.Results {
		was := s.text(result)
		if slices.Contains([]string{"nil", "false", `""`, "0", types[i] + "{}"}, was) {
			continue
		}
		var values []string
		for j, other := range r.Results {
			values = append(values, s.text(other))
			if i == j {
				values[j] = "mutantZero[" + types[i] + "]()"
			}
		}
		s.open(r.Pos(), "if "+s.on(r, "the zero value for "+shortened(s.flat(result)))+" { return "+strings.Join(values, ", ")+" }; ")
		if types[i] == "bool" && was != "true" {
			values[i] = "true"
			s.open(r.Pos(), "if "+s.on(r, "true for "+shortened(s.flat(result)))+" { return "+strings.Join(values, ", ")+" }; ")
		}
	}
}

func shortened(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// switchboard is the file that is added to a package: it says which mutant is on, and notes which were asked for.
const switchboard = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var mutantNumber, mutantErr = strconv.Atoi(os.Getenv("MUTATEGO_MUTANT"))
var mutantTrace = os.Getenv("MUTATEGO_TRACE")
var mutantSeen sync.Map

func mutantZero[T any]() (zero T) { return }

func mutantOn(n int) bool {
	if mutantTrace != "" {
		if _, seen := mutantSeen.LoadOrStore(n, true); !seen {
			file, err := os.OpenFile(mutantTrace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = file.WriteString(strconv.Itoa(n) + "\n")
			}
			if err != nil {
				panic(err)
			}
			file.Close()
		}
	}
	return mutantErr == nil && n == mutantNumber
}
`
