package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// verdictTime bounds the search for an order that explains the history of one process.
const verdictTime = 20 * time.Second

// model is one process with its session. A call without a reply leaves two states that may be: it
// had its effect or it had none.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{world{}} },
	Step: func(state, input, output any) []any {
		before, got := state.(world), output.(reply)
		after, want := input.(call).apply(before)
		switch {
		case got.lost && after != before:
			return []any{after, before}
		case got.lost || got == want:
			return []any{after}
		}
		return nil
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v: %v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprint(state) },
}).ToModel()

// verdict looks for an order of the operations that explains them all; if there is none, it writes
// a page that shows them into dir.
func verdict(pid string, ops []porcupine.Operation, dir string) (porcupine.CheckResult, string) {
	result := porcupine.CheckOperationsTimeout(model, ops, verdictTime)
	if result != porcupine.Illegal {
		return result, ""
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, verdictTime)
	page := filepath.Join(dir, "history-"+strings.ReplaceAll(pid, "/", "-")+".html")
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = porcupine.VisualizePath(model, info, page)
	}
	fault := fmt.Sprintf("no order explains the %d operations on %s; see %s", len(ops), pid, page)
	if err != nil {
		fault += fmt.Sprintf(", which could not be written: %v", err)
	}
	return result, fault + "\n" + unexplained(ops, info)
}

// unexplained reports the call that was answered first among those that the longest order found has
// no place for, and of all calls that were under way at the time.
func unexplained(ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	type identity struct {
		client int
		call   int64
	}
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := make(map[identity]bool)
	for _, o := range longest {
		placed[identity{o.ClientId, o.Call}] = true
	}
	var first *porcupine.Operation
	for i, o := range ops {
		if !placed[identity{o.ClientId, o.Call}] && (first == nil || o.Return < first.Return) {
			first = &ops[i]
		}
	}
	if first == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "an order of %d of them was found; the first it does not explain is %s\namong\n", len(longest), described(first))
	for i, o := range ops {
		if o.Return >= first.Call && o.Call <= first.Return {
			fmt.Fprintf(&b, "  %s\n", described(&ops[i]))
		}
	}
	return b.String()
}

func described(o *porcupine.Operation) string {
	return fmt.Sprintf("client %d, %d to %d µs: %v: %v", o.ClientId, o.Call/1000, o.Return/1000, o.Input, o.Output)
}
