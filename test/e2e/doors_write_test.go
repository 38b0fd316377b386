package e2e_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// attempt is one way in that must be shut.
type attempt struct {
	name    string
	subject string
	reply   string
	header  nats.Header
	data    string
	// open: with the credentials of a node it would change something, which
	// shows that the attempt is a real one.
	open bool
}

// attempts to change what is not the intruder's, by publishing.
func (c *castle) attempts() []attempt {
	log, others := eventstore.EventSubject(c.ours), eventstore.EventSubject(c.theirs)
	// A conversation that is not: what is sent there changes no log by itself.
	nobody := "rollcall.in.main." + api.NewID() + ".lead"
	lease := `{"node":"mallory","epoch":1}`
	entry := "$O.ROLLCALL_BLOBS.M." + base64.URLEncoding.EncodeToString([]byte("x"))
	all := []attempt{
		{name: "publish an event", subject: log, data: "x", open: true},
		{name: "publish an event of another tenant", subject: others, data: "x", open: true},
		{name: "publish an event where no partition is", subject: "rollcall.events.99.main." + c.ours.Conversation, data: "x", open: true},
		{name: "claim a partition", subject: "$KV.ROLLCALL_NODES.owner.3", data: lease, open: true},
		{name: "drain a node", subject: "$KV.ROLLCALL_NODES.drain.n1", data: "{}", open: true},
		{name: "put a body", subject: entry, data: "{}", open: true},
		{name: "put a chunk", subject: "$O.ROLLCALL_BLOBS.C.x", data: "x", open: true},
		{name: "put a snapshot", subject: "$O.ROLLCALL_SNAPSHOTS.M.x", data: "{}", open: true},
		{name: "arm a timer", subject: "rollcall.timer.main." + c.ours.Conversation + ".t", data: "x", open: true},
		{name: "arm a timer of another tenant", subject: "rollcall.timer.other." + c.theirs.Conversation + ".t", data: "x", open: true},
		{name: "have a timer come due", subject: "rollcall.due.main." + c.ours.Conversation + ".t", data: "x", open: true},
		{name: "write under the inbox", subject: "rollcall.cmd.3.main." + c.ours.Conversation + ".lead", data: "x"},
		{name: "bury a letter", subject: "rollcall.dead.other." + c.theirs.Conversation + ".lead", data: "x"},
		{name: "speak in the feed", subject: api.FeedSubject(c.ours), data: `{"type":"event","version":99}`},
		{name: "speak in another's feed", subject: api.FeedSubject(c.theirs), data: `{"type":"event","version":99}`},
		{name: "write to another tenant", subject: "rollcall.in.other." + c.theirs.Conversation + ".lead", data: "x", open: true},
		{name: "command another tenant", subject: "rollcall.api.other.pause", data: fmt.Sprintf(`{"conversation":%q}`, c.theirs.Conversation), open: true},
		{name: "the operators' verbs", subject: "rollcall.admin.drain", data: `{"node":"n1"}`},
		{name: "the nodes' verbs", subject: "rollcall.node.n1.main.roll-here", data: `{}`},
	}
	all = append(all, c.streamAttempts("$JS.API")...)
	all = append(all, replyAttempts(nobody, log, others, c.theirs)...)
	all = append(all, headerAttempts(nobody, log, c.theirs)...)
	return append(all, oddAttempts(c.theirs)...)
}

// streamAttempts are requests to JetStream under a prefix.
func (c *castle) streamAttempts(prefix string) []attempt {
	return []attempt{
		{name: "make a consumer", subject: prefix + ".CONSUMER.CREATE.ROLLCALL_EVENTS.spy", data: `{"stream_name":"ROLLCALL_EVENTS","config":{"name":"spy","durable_name":"spy","ack_policy":"none"}}`, open: true},
		{name: "make a consumer that pushes", subject: prefix + ".CONSUMER.CREATE.ROLLCALL_EVENTS.push", data: `{"stream_name":"ROLLCALL_EVENTS","config":{"name":"push","durable_name":"push","deliver_subject":"rollcall.feed.main.x","ack_policy":"none"}}`, open: true},
		{name: "make a consumer the old way", subject: prefix + ".CONSUMER.DURABLE.CREATE.ROLLCALL_EVENTS.old", data: `{"stream_name":"ROLLCALL_EVENTS","config":{"durable_name":"old","ack_policy":"none"}}`, open: true},
		{name: "delete a consumer", subject: prefix + ".CONSUMER.DELETE.ROLLCALL_EVENTS.audit-bob", open: true},
		{name: "make a stream", subject: prefix + ".STREAM.CREATE.SPY", data: `{"name":"SPY","subjects":["rollcall.feed.>"]}`, open: true},
		{name: "change a stream", subject: prefix + ".STREAM.UPDATE.ROLLCALL_TIMERS", data: `{"name":"ROLLCALL_TIMERS","subjects":["rollcall.timer.*.*.*","rollcall.due.*.*.*"],"storage":"file","num_replicas":1,"description":"mine","allow_rollup_hdrs":true,"deny_delete":true,"allow_msg_ttl":true,"allow_msg_schedules":true,"retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","duplicate_window":120000000000}`, open: true},
		{name: "purge a stream", subject: prefix + ".STREAM.PURGE.KV_ROLLCALL_NODES", data: `{"filter":"$KV.ROLLCALL_NODES.owner.5"}`, open: true},
		{name: "delete a message", subject: prefix + ".STREAM.MSG.DELETE.ROLLCALL_EVENTS", data: `{"seq":1}`},
		{name: "purge the log", subject: prefix + ".STREAM.PURGE.ROLLCALL_EVENTS"},
		{name: "delete a stream", subject: prefix + ".STREAM.DELETE.ROLLCALL_DEAD", open: true},
		{name: "take back what was read", subject: prefix + ".CONSUMER.RESET.ROLLCALL_INBOX.p3-1", data: `{"seq":1}`},
		{name: "depose the leader", subject: prefix + ".META.LEADER.STEPDOWN"},
		{name: "purge the account", subject: prefix + ".ACCOUNT.PURGE.ROLLCALL"},
	}
}

// replyAttempts have the server, or a node, publish an answer where the
// intruder may not.
func replyAttempts(nobody, log, others string, theirs domain.Key) []attempt {
	var all []attempt
	for _, to := range []struct {
		reply string
		open  bool
	}{
		{log, true},
		{others, true},
		{"rollcall.in.other." + theirs.Conversation + ".lead", true},
		{"$KV.ROLLCALL_NODES.owner.4", true},
		{"$O.ROLLCALL_BLOBS.C.y", true},
		{"$JS.API.STREAM.PURGE.ROLLCALL_DEAD", false},
		{"$JS.API.STREAM.DELETE.ROLLCALL_SPY", false},
		{"rollcall.api.other.ls", false},
		{"rollcall.admin.nodes", false},
	} {
		all = append(all,
			attempt{name: "by the reply of a message, " + to.reply, subject: nobody, reply: to.reply, data: "x", open: to.open},
			attempt{name: "by the reply of a request, " + to.reply, subject: "rollcall.api.main.ls", reply: to.reply, open: to.open},
			attempt{name: "by the reply of a refusal, " + to.reply, subject: "rollcall.api.main.show", reply: to.reply, data: `{"conversation":"nobody"}`, open: to.open},
		)
	}
	return all
}

// headerAttempts are messages whose headers ask the server, or a node, for more.
func headerAttempts(nobody, log string, theirs domain.Key) []attempt {
	foreign := "rollcall.in.other." + theirs.Conversation + ".lead"
	var all []attempt
	for _, h := range []nats.Header{
		{"Nats-Trace-Dest": {log}},
		{"Nats-Trace-Dest": {"rollcall.feed.main.x"}, "Nats-Trace-Only": {"true"}},
		{"traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}},
		{"Nats-Rollup": {"all"}},
		{"Nats-Rollup": {"sub"}},
		{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {foreign}},
		{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {log}},
		{"Nats-Expected-Stream": {"ROLLCALL_EVENTS"}},
		{"Nats-Expected-Last-Sequence": {"1"}},
		{"Nats-Expected-Last-Subject-Sequence": {"0"}},
		{"Nats-TTL": {"1s"}},
		{"Nats-Incr": {"+1"}},
		{"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
		{"Nats-Request-Info": {`{"acc":"ROLLCALL","svc":"ROLLCALL"}`}},
		{"Nats-Stream-Source": {"ROLLCALL_TIMERS 1"}},
		{"KV-Operation": {"PURGE"}},
		{"Status": {"408"}},
		{"Rollcall-Reply": {log}},
		{"Rollcall-Reply": {foreign}},
		{"Rollcall-Reply": {"$KV.ROLLCALL_NODES.owner.4"}},
		{"Rollcall-Reply": {"$JS.API.STREAM.DELETE.ROLLCALL_DEAD"}},
		{"Rollcall-Reply": {"rollcall.admin.drain"}},
		{"rollcall-reply": {log}},
		{"Rollcall-Node": {"n1"}, "Rollcall-Epoch": {"999999"}, "Rollcall-Version": {"1"}, "Rollcall-Actor": {"framework"}},
	} {
		all = append(all, attempt{name: fmt.Sprintf("by headers, %v", h), subject: nobody, header: h, data: "x"})
	}
	return all
}

// oddAttempts use subjects that nobody thinks of.
func oddAttempts(theirs domain.Key) []attempt {
	var all []attempt
	for _, subject := range []string{
		"rollcall.in.*." + theirs.Conversation + ".lead", "rollcall.in.>", "rollcall.in.main.*.lead", "rollcall.in.main.>", "rollcall.in.main.*.*",
		"rollcall.in.main..lead", "rollcall.in..main.lead", "rollcall.in.main.a.b.lead", "rollcall.in.main.lead", "rollcall.in.main." + strings.Repeat("x", 3000) + ".lead",
		"rollcall.in.main.\u00e9.lead", "rollcall.in.main.\xff.lead", "rollcall.in.MAIN.x.lead", "rollcall.in.main.x.Lead", "rollcall.in.main.x.", "rollcall.in.main.a b.lead",
		"rollcall.api.*.ls", "rollcall.api.>.ls", "rollcall.api.main", "rollcall.api.main.", "rollcall.api..ls", "rollcall.api.main.other.ls", "rollcall.api.main.upload.*", "rollcall.api.main.upload.>",
		"rollcall.api.main.upload.x.y", "rollcall.api.\u00fc.ls", "rollcall.api.other.main.ls", "*", ">", "rollcall.>", "rollcall.*.main.x.lead", "_R_.x", "_INBOX.x", "$SRV.PING", "$SYS.REQ.SERVER.PING", "$SYS.ACCOUNT.x.CLAIMS.UPDATE",
	} {
		all = append(all, attempt{name: fmt.Sprintf("odd subject %.60q", subject), subject: subject, data: "x"})
	}
	return all
}

// forgeries are commands of the intruder's own tenant that say more than an
// operator may, and bytes that are none.
func (c *castle) forgeries(t *testing.T) []attempt {
	t.Helper()
	wire := func(m proto.Message) string {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	type cmd = rollcallv1.Command
	outcome := &cmd{Id: "forged-1", Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{}}}
	commands := map[string]*cmd{
		"the reply of a model":             outcome,
		"the outcome of a tool":            {Kind: &rollcallv1.Command_RecordToolOutcome{RecordToolOutcome: &rollcallv1.RecordToolOutcome{}}},
		"the failure of a run":             {Kind: &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{}}},
		"a run that goes on":               {Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{}}},
		"a run that is set down":           {Kind: &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{}}},
		"a member's words":                 {Actor: "lead", Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: "x"}}}},
		"the framework's words":            {Actor: "framework", Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}},
		"a timer that was never armed":     {Kind: &rollcallv1.Command_FireTimer{FireTimer: &rollcallv1.FireTimer{Timer: "t"}}},
		"a conversation of another tenant": {Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Conversation: c.theirs.Conversation, Tenant: "other", Contract: "none"}}},
		"an id of the inbox's":             {Id: "in-1-1", Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}},
		"no command":                       {},
	}
	binary := nats.Header{"Content-Type": {"application/protobuf"}}
	in := eventstore.InboxSubject(c.ours, eventstore.ToCommand)
	var all []attempt
	for name, m := range commands {
		all = append(all, attempt{name: name, subject: in, header: binary, data: wire(m)})
	}
	commit := &rollcallv1.Commit{Version: 99, Node: "n1", Epoch: 999_999, Events: []*rollcallv1.Event{{}}}
	for name, data := range map[string]string{
		"a commit with node and epoch": wire(commit), "noise": "\xff\xfe\x00\x01", "a cut command": wire(outcome)[:3], "nothing": "",
		"a field of 4 GiB": "\x0a\xff\xff\xff\xff\x0f", "nested without end": strings.Repeat("\x9a\x01\x7f", 10_000),
		"too much": strings.Repeat("x", eventstore.MaxInbox+1), "far too much": strings.Repeat("x", 1<<20),
	} {
		all = append(all, attempt{name: name, subject: in, header: binary, data: data})
	}
	ask := wire(&rollcallv1.CommandRequest{Conversation: c.ours.Conversation, Command: outcome})
	for _, v := range []string{"send", "open", "task", "retry", "budget"} {
		all = append(all,
			attempt{name: "the reply of a model as " + v, subject: "rollcall.api.main." + v, header: binary, data: ask},
			attempt{name: "noise as " + v, subject: "rollcall.api.main." + v, header: binary, data: "\xff\xfe\x00\x01"})
	}
	return append(all,
		attempt{name: "protobuf to a member", subject: eventstore.InboxSubject(c.ours, "lead"), header: binary, data: wire(outcome)},
		attempt{name: "mail of a member", subject: eventstore.InboxSubject(c.ours, "lead"), header: nats.Header{"Content-Type": {"application/json"}}, data: `{"kind":"text","from":"m1","text":"x"}`},
		attempt{name: "a control message", subject: eventstore.InboxSubject(c.ours, "lead"), header: nats.Header{"Content-Type": {"application/json"}}, data: `{"kind":"control","text":"shutdown"}`},
		attempt{name: "JSON without end", subject: "rollcall.api.main.show", data: strings.Repeat(`{"conversation":`, 50_000)},
	)
}

// try makes an attempt and waits until all that can come of it has.
func (c *castle) try(i *intruder, a attempt) {
	m := &nats.Msg{Subject: a.subject, Reply: a.reply, Header: a.header, Data: []byte(a.data)}
	// What the client refuses to send is shut too, and the server closes the
	// connection of who sends what it cannot read.
	_ = i.PublishMsg(m)
	c.eventually(c.t, "the intruder is connected again after "+a.name, func() bool { return i.FlushTimeout(patience) == nil })
}

// Whatever a client or an auditor publishes, the log, the buckets, the streams
// and the consumers are afterwards what they were.
func TestNobodyOutsideWrites(t *testing.T) {
	t.Parallel()
	c := newCastle(t)
	before := c.inventory()
	for _, role := range []string{"client-main", "auditor-alice", "auditor-bob"} {
		t.Run(role, func(t *testing.T) {
			i := c.intruder(role)
			all := append(c.attempts(), c.forgeries(t)...)
			all = append(all, c.streamAttempts(auth.AuditAPI)...)
			all = append(all, c.pulls()...)
			for _, a := range all {
				c.try(i, a)
			}
			if got := i.denials(); got < 20 {
				t.Errorf("the server denied %d subjects: was it asked at all?", got)
			}
			c.quiet()
			for _, d := range changes(before, c.inventory()) {
				t.Error(d)
			}
			c.alive(t)
			if role == "client-main" {
				c.letters(t)
			}
		})
	}
	// With the credentials of a node each of them would have changed something:
	// they are real.
	t.Run("node", func(t *testing.T) {
		i := c.intruder("node")
		for _, a := range append(c.attempts(), c.nodePulls()...) {
			if !a.open {
				continue
			}
			before := c.inventory()
			c.try(i, a)
			c.eventually(t, a.name, func() bool { return len(changes(before, c.inventory())) > 0 })
		}
	})
}

// letters checks what became of what the client may send and nobody can use: it
// is kept for the operator, with nothing in it that the server would obey.
func (c *castle) letters(t *testing.T) {
	t.Helper()
	s, err := c.js(c.nodes).Stream(t.Context(), eventstore.StreamDead)
	if err != nil {
		t.Fatal(err)
	}
	state := s.CachedInfo().State
	subjects := map[string]bool{}
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		subjects[m.Subject] = true
		for h := range m.Header {
			// The last four are the server's own, who gives the letter out.
			if strings.HasPrefix(h, "Nats-") && !slices.Contains([]string{nats.MsgIdHdr, "Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"}, h) {
				t.Errorf("letter %d to %s has the header %s", seq, m.Subject, h)
			}
		}
	}
	if len(subjects) < 5 || state.Msgs < 40 || !subjects["rollcall.dead.main.*.lead"] {
		t.Errorf("%d letters came, to %v", state.Msgs, subjects)
	}
}
