package cli

import (
	"context"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// nodeSource reads from a node, with a client's rights: its tenant's logs.
type nodeSource struct {
	client *api.Client
	// whole asks for sequences and headers too.
	whole bool
}

var _ audit.Source = (*nodeSource)(nil)

// Find implements audit.Source: the node knows the names.
func (n *nodeSource) Find(ctx context.Context, _, ref string) (domain.Key, error) {
	key := domain.Key{Tenant: n.client.Tenant(), Conversation: ref}
	if api.IsID(ref) {
		return key, nil
	}
	page, err := n.client.LogJSON(ctx, api.LogRequest{ReadRequest: api.ReadRequest{Conversation: ref}, Limit: 1})
	if err != nil {
		return key, err
	}
	return domain.Key{Tenant: page.Tenant, Conversation: page.Conversation}, nil
}

// Conversations implements audit.Source.
func (n *nodeSource) Conversations(ctx context.Context, _ string) ([]domain.Key, error) {
	all, err := n.client.List(ctx)
	if err != nil {
		return nil, err
	}
	if all.Behind { // what is not listed would pass as looked at
		return nil, domain.Refuse("jetstream-unavailable", "it is not known which conversations there are", "the node could not read what the log holds now",
			"see that most of the NATS servers run and reach each other, and try again")
	}
	var keys []domain.Key
	for _, c := range all.Conversations {
		keys = append(keys, domain.Key{Tenant: n.client.Tenant(), Conversation: c.ID})
	}
	return keys, nil
}

// Read implements audit.Source.
func (n *nodeSource) Read(ctx context.Context, key domain.Key, fn func(audit.Entry) error) error {
	if n.whole {
		return n.readWhole(ctx, key, fn)
	}
	_, err := n.client.Log(ctx, key.Conversation, 1, func(raw []byte) error {
		return fn(audit.Entry{Key: key, Sealed: raw})
	})
	return err
}

func (n *nodeSource) readWhole(ctx context.Context, key domain.Key, fn func(audit.Entry) error) error {
	about := api.LogRequest{ReadRequest: api.ReadRequest{Conversation: key.Conversation}, From: 1, Raw: true}
	for {
		page, err := n.client.LogJSON(ctx, about)
		if err != nil {
			return err
		}
		for _, c := range page.Commits {
			if err := fn(audit.Entry{Key: key, Seq: c.Seq, Header: c.Headers, Sealed: c.Raw}); err != nil {
				return err
			}
		}
		if about.From += uint64(len(page.Commits)); !page.More {
			return nil
		}
	}
}

// Body implements audit.Source.
func (n *nodeSource) Body(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	return n.client.Blob(ctx, key.Conversation, api.BlobRef{SHA256: b.GetSha256(), Size: b.GetSize()})
}

// Close implements audit.Source; the client is the session's.
func (n *nodeSource) Close() error { return nil }
