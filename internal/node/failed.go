package node

import (
	"context"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// Failed tells, once, why the node cannot go on: its server stores nothing any
// more, or NATS does not take it any more. Whoever runs it ends it then, and
// starts it again when the cause is gone: neither mends itself.
func (n *Node) Failed() <-chan error { return n.failed }

func (n *Node) fail(why error) {
	select {
	case n.failed <- why:
	default: // it failed already
	}
}

// watch waits for the server to say that it cannot write.
func (n *Node) watch(server *natsd.Server, dir string) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case why := <-server.Broken():
			n.fail(domain.Refuse("storage-failed", "nothing can be stored in "+dir, why,
				"free space on its disk, or mend it; then start the node again: it goes on from what was acknowledged"))
		case <-ctx.Done():
		}
	}()
	n.onClose(func(context.Context) error { stop(); <-done; return nil })
}
