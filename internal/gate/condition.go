// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

const (
	// MaxExpressionBytes is how long failWhen and passWhen may be.
	MaxExpressionBytes = 1024
	// maxCost is what an expression may cost, in units of CEL; a comparison of two values costs about 3.
	maxCost = 10_000
)

// numbers are what a gate is judged by. What is nil is not known.
type numbers struct{ value, baseline, samples *float64 }

// condition is a compiled expression.
type condition struct {
	program cel.Program
	// names are the numbers that it reads.
	names map[string]bool
}

// truth is what an expression says.
type truth int

const (
	isFalse truth = iota
	isTrue
	// unknown says that it depends on a number that is not known.
	unknown
)

// environment has the three numbers. Macros are for lists, which there are none of.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("value", cel.DoubleType), cel.Variable("baseline", cel.DoubleType), cel.Variable("samples", cel.DoubleType),
		cel.ClearMacros(), cel.CrossTypeNumericComparisons(true),
	)
})

// compile compiles an expression. Whole numbers in it are taken for doubles, so that 2 * baseline is what it looks like and 1/2 is
// a half.
func compile(text string) (*condition, error) {
	if len(text) > MaxExpressionBytes {
		return nil, fmt.Errorf("has %d bytes, the limit is %d", len(text), MaxExpressionBytes)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, explained(issues)
	}
	names := map[string]bool{}
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			names[e.AsIdent()] = true
		}
		doubled(e)
	}))
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, explained(issues)
	}
	if checked.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("is of type %s, and has to be true or false", checked.OutputType())
	}
	program, err := env.Program(checked, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return nil, fmt.Errorf("cannot be evaluated: %w", err)
	}
	return &condition{program: program, names: names}, nil
}

// doubled makes a whole number a double.
func doubled(e ast.Expr) {
	if e.Kind() != ast.LiteralKind {
		return
	}
	if n, is := e.AsLiteral().(types.Int); is {
		e.SetKindCase(ast.NewExprFactory().NewLiteral(e.ID(), types.Double(n)))
	}
}

// explained says what is wrong in one line.
func explained(issues *cel.Issues) error {
	var texts []string
	for _, e := range issues.Errors() {
		texts = append(texts, fmt.Sprintf("at character %d: %s", e.Location.Column()+1, strings.Join(strings.Fields(e.Message), " ")))
	}
	return errors.New(strings.Join(texts[:min(len(texts), 3)], "; ") + " (there are value, baseline and samples, all numbers)")
}

// eval says whether it holds. What is not known is left open, so that an expression which does not depend on it still decides.
func (c *condition) eval(n numbers) (truth, error) {
	known := map[string]any{}
	var open []*cel.AttributePatternType
	for name, number := range map[string]*float64{"value": n.value, "baseline": n.baseline, "samples": n.samples} {
		if number == nil {
			open = append(open, cel.AttributePattern(name))
		} else {
			known[name] = *number
		}
	}
	activation, err := cel.PartialVars(known, open...)
	if err != nil {
		return unknown, fmt.Errorf("preparing the numbers: %w", err)
	}
	result, _, err := c.program.Eval(activation)
	switch {
	case err != nil:
		return unknown, fmt.Errorf("evaluating: %w", err)
	case types.IsUnknown(result):
		return unknown, nil
	case result == types.True:
		return isTrue, nil
	default:
		return isFalse, nil
	}
}

// reads says whether an expression names a number.
func (c *condition) reads(name string) bool { return c.names[name] }
