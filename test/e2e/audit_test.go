package e2e_test

import (
	"syscall"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
)

// A real auditor's session, as docs/audit.md tells it: with an auditor's
// credentials alone, when no node runs at all, by the plain nats command line
// and by ours, and from an export without any NATS.
func TestAuditSession(t *testing.T) {
	t.Parallel()
	o := newOffice(t, demo.Script(), "auditor-alice")
	o.operator("run", demo.Objective(demo.SendUpdate, demo.NewField), "--name", "harbor", "--contract", "mailbox", "--progress", "quiet")
	o.end(syscall.SIGKILL)
	o.walk("audit.md", "tls://nats-1:4222", o.url)
}
