package node

import (
	"context"
	"time"

	"github.com/rollcall-dev/rollcall/internal/model"
)

// noModel answers for a node that has no model: what is stored can be read,
// and a run fails at its first call, which retry takes up.
type noModel struct{}

func (noModel) Held() time.Duration { return 0 }

func (noModel) Pass(ctx context.Context) error { return ctx.Err() }

func (noModel) Call(context.Context, model.Caller, model.Request, func(string)) (model.Reply, error) {
	return model.Reply{}, &model.Error{
		Code: "model-missing", What: "there is no model to ask", Why: "the node was started without one",
		Try: "rollcall down, set ROLLCALL_MODEL and OPENAI_API_KEY or OPENAI_BASE_URL, rollcall up, then rollcall retry",
	}
}
