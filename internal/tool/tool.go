// Package tool holds the tools that run outside the log: the files of
// a workspace, and mail to read again. Coordination tools are not here: a contract decides them.
package tool

import (
	"context"
	"encoding/json"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Outcome is what a call came to. A tool's own error is an outcome too: the
// model reads it and goes on.
type Outcome struct {
	Output string
	Error  bool
	// Files changed; their contents are in the object store already.
	Files []*rollcallv1.FileChange
}

// Tool is one tool.
type Tool interface {
	Definition() *rollcallv1.ToolDefinition
	// Call runs the tool. A returned error is a fault of the surroundings (the
	// object store cannot be reached), tried again by the run; everything the
	// model can mend is an Outcome with Error set.
	Call(ctx context.Context, plan domain.ToolPlan, args json.RawMessage) (Outcome, error)
}
