package node

import (
	"context"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/projections"
)

// views are the read models, and what only the actors know: a conversation
// that crashed too often is set aside although its log is whole.
type views struct {
	*projections.DB
	actors *actors.Node
}

// Conversations implements api.Views.
func (v views) Conversations(ctx context.Context, tenant string) ([]projections.Conversation, error) {
	list, err := v.DB.Conversations(ctx, tenant)
	for i := range list {
		v.mark(&list[i])
	}
	return list, err
}

// Conversation implements api.Views.
func (v views) Conversation(ctx context.Context, key domain.Key) (projections.Detail, error) {
	detail, err := v.DB.Conversation(ctx, key)
	if err == nil {
		v.mark(&detail.Conversation)
	}
	return detail, err
}

func (v views) mark(c *projections.Conversation) {
	if why, set := v.actors.SetAside()[domain.Key{Tenant: c.Tenant, Conversation: c.ID}]; set && c.Fault == nil {
		c.Status, c.Fault = "quarantined", &projections.Fault{Code: "conversation-quarantined", Why: why}
	}
}
