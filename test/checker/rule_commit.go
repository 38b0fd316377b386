package checker

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// commitIDs: every commit has an id of its own, and the message that carries it
// says in its subject and headers what the commit says (docs/subjects.md).
func commitIDs(b *book, say say) watcher {
	seen := map[string]uint64{}
	return watcher{commit: func(c *rollcallv1.Commit) {
		switch at, again := seen[c.GetId()]; {
		case c.GetId() == "":
			say("the commit has no id")
		case again:
			say("the commit has the id %s of version %d", c.GetId(), at)
		}
		seen[c.GetId()] = c.GetVersion()
		if b.stored.Header == nil {
			return
		}
		for name, want := range headersOf(c) {
			if got := strings.Join(b.stored.Header[name], ", "); got != want {
				say("the header %s says %q and the commit %q", name, got, want)
			}
		}
		if want := subjectOf(b.log); b.stored.Subject != want {
			say("the commit lies under %s and belongs under %s", b.stored.Subject, want)
		}
	}}
}

func headersOf(c *rollcallv1.Commit) map[string]string {
	var types []string
	for _, e := range c.GetEvents() {
		if name := factOf(e, 0, 0).name(); name != "" && !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return map[string]string{
		"Nats-Msg-Id":      c.GetId(),
		"Rollcall-Version": strconv.FormatUint(c.GetVersion(), 10),
		"Rollcall-Node":    c.GetNode(),
		"Rollcall-Epoch":   strconv.FormatUint(c.GetEpoch(), 10),
		"Rollcall-Types":   strings.Join(types, ","),
	}
}

// subjectOf is where a conversation's log lies.
func subjectOf(l Log) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(l.Tenant + l.Conversation))
	return fmt.Sprintf("rollcall.events.%d.%s.%s", h.Sum32()%32, l.Tenant, l.Conversation)
}

// epochs: a node that lost its partition writes nothing more. After a higher
// epoch there is no lower one, and an epoch is one node's.
func epochs(_ *book, say say) watcher {
	var highest uint64
	nodes := map[uint64]string{}
	return watcher{commit: func(c *rollcallv1.Commit) {
		if c.GetEpoch() < highest {
			say("node %s writes with epoch %d after a commit of epoch %d", c.GetNode(), c.GetEpoch(), highest)
		}
		highest = max(highest, c.GetEpoch())
		if node, known := nodes[c.GetEpoch()]; known && node != c.GetNode() {
			say("node %s writes with epoch %d, which is that of node %s", c.GetNode(), c.GetEpoch(), node)
		}
		nodes[c.GetEpoch()] = c.GetNode()
	}}
}

// rememberedCommands is how many ids a conversation promises to know again.
const rememberedCommands = 10_000

// commandsOnce: a client's key makes a command idempotent. None of the newest
// 10,000 stands in a second commit, and each has its subject beside it.
func commandsOnce(_ *book, say say) watcher {
	type place struct {
		version uint64
		n       int
	}
	seen, n := map[string]place{}, 0
	return watcher{commit: func(c *rollcallv1.Commit) {
		if subjects := len(c.GetSubjects()); subjects != len(c.GetCommandIds()) {
			say("the commit has %d commands and says of %d what they made", len(c.GetCommandIds()), subjects)
		}
		for _, id := range c.GetCommandIds() {
			n++
			if at, again := seen[id]; again && n-at.n <= rememberedCommands {
				say("command %s has an effect again, it had one in version %d", id, at.version)
			}
			seen[id] = place{c.GetVersion(), n}
		}
	}}
}
