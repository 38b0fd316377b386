package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/internal/nodefile"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// huge is 30 MiB of words in which characters have one byte to four.
var huge = strings.Repeat("Größe 語 😀.\n", 30<<20/len("Größe 語 😀.\n"))

// spoken is what a model says of it, in MiB unless all is asked for. Each byte
// of a stream is looked at many times, under the race detector for long: the
// whole is for longer runs.
func spoken(mib int) string {
	if os.Getenv("ROLLCALL_SOAK") != "" {
		return huge
	}
	return huge[:mib<<20-(mib<<20)%len("Größe 語 😀.\n")]
}

// roomy is the most memory that a node may take for one huge text, in MiB: a
// handful of copies of it, and what the race detector adds.
const roomy = 1500

// TestInputHuge: 30 MiB at every place where a text can come in. It works, or
// is refused with what to do; the node lives, nothing is lost, others go on.
func TestInputHuge(t *testing.T) {
	t.Parallel()
	g := openGenerous(t, func(q question) (words, tool, arguments string) {
		switch last := q.last(); {
		case last.Role == "tool":
			return "The tool said: " + last.Content, "", ""
		case strings.Contains(last.Content, "say it"):
			return spoken(2), "", ""
		case strings.Contains(last.Content, "write it"):
			return "", "file_write", `{"path":"huge.txt","content":` + quoted(spoken(6)) + `}`
		case strings.Contains(last.Content, "tell it"):
			return "", "task_create", `{"title":"x","description":` + quoted(spoken(1)) + `}`
		case strings.Contains(last.Content, "read it"):
			return "", "file_read", `{"path":"huge.txt"}`
		}
		return "I hear.", "", ""
	})
	p := newPlace(t, script(t, "rules: [{text: never}]\n"))
	p.env = append(p.env, "OPENAI_BASE_URL="+g.URL+"/v1")
	p.damaged = []string{"answered"} // by another server than the one that is judged by
	p.start()
	c := p.client()
	desk := p.detach("desk", "Hello.")
	p.until(c, desk, "the Lead rests", quiet)
	dir := t.TempDir()
	path := filepath.Join(dir, "huge.txt")
	input := spoken(8)
	if err := os.WriteFile(path, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	asks := func(p *place, words, want string) string {
		p.t.Helper()
		id := strings.TrimSpace(p.ok("run", words, "--name", words, "--contract", "mailbox", "--detach", "--budget", "0"))
		s := p.until(c, id, "the Lead rests", quiet)
		if v := s.Verdict(); v.Exit != 0 {
			p.t.Errorf("it ended with %+v", v)
		}
		all := only(p.facts(c, id), (*rollcallv1.Event).GetLeadReplied)
		text := got(c.BodyText(p.ctx(), id, all[len(all)-1].GetText())).must(p.t)
		if !strings.Contains(text, want) {
			p.t.Errorf("%q is answered with %.300q, without %.80q", words, text, want)
		}
		return id
	}
	before := p.state(c, desk).Version

	t.Run("input-huge-words", func(t *testing.T) {
		p := p.on(t)
		for _, args := range [][]string{{"send", "desk", "-", "--json"}, {"run", "-", "--json"}} {
			p.feed(huge, args...).refusal(t, "text-too-long", 4, args)
		}
	})
	t.Run("input-huge-nats", func(t *testing.T) {
		p := p.on(t)
		nc := p.nats()
		if err := nc.PublishMsg(inbox(desk, "lead", huge)); !errors.Is(err, nats.ErrMaxPayload) {
			t.Errorf("published: %v", err)
		}
		if words := p.overTCP(desk, huge); !strings.Contains(words, "Maximum Payload") {
			t.Errorf("the server says %q", words)
		}
		reply := got(nc.RequestWithContext(p.ctx(), "rollcall.api.main.send", []byte(`{"conversation":"desk","text":`+quoted(huge[:700<<10])+`}`))).must(t)
		if code := reply.Header.Get("Nats-Service-Error-Code") + string(reply.Data); !strings.Contains(code, "text-too-long") {
			t.Errorf("the api answers %.300s", code)
		}
	})
	t.Run("input-huge-file", func(t *testing.T) {
		p := p.on(t)
		run := p.begin("run", "read it", "--input", path, "--name", "reader", "--json")
		if end := run.wait().ended(t); end.Exit != 0 || !strings.Contains(end.Answer, "lines 1 to 1000") {
			t.Errorf("it ended with %d: %.300q", end.Exit, end.Answer)
		}
		out := t.TempDir()
		p.ok("files", "reader", "get", "huge.txt", "--output", out)
		if data, err := os.ReadFile(filepath.Join(out, "Lead", "huge.txt")); err != nil || string(data) != input {
			t.Errorf("the file comes back with %d bytes, %v", len(data), err)
		}
		more := filepath.Join(dir, "more.txt")
		if err := os.WriteFile(more, []byte(huge+huge), 0o600); err != nil {
			t.Fatal(err)
		}
		p.refused("file-too-large", 4, "run", "x", "--input", more)
	})
	t.Run("input-huge-settings", func(t *testing.T) {
		p := p.on(t)
		for _, file := range []string{path, "/dev/zero"} {
			p.refused("team-invalid", 2, "run", "x", "--agents", file)
			p.refused("settings-invalid", 2, "ls", "--config", file)
			p.refused("script-invalid", 2, "up", "--data", t.TempDir(), "--model", "scripted:"+file)
		}
		p.refused("file-too-large", 4, "run", "x", "--input", "/dev/zero")
	})
	t.Run("input-huge-reply", func(t *testing.T) {
		p := p.on(t)
		id := asks(p, "say it", spoken(2))
		if show := p.ok("show", "say it"); !strings.Contains(show, "idle") {
			t.Errorf("show prints %.300s", show)
		}
		if log := p.ok("log", id); len(log) > 100<<10 {
			t.Errorf("log prints %d bytes", len(log))
		}
		if end := p.begin("watch", id, "--json").wait().ended(t); end.Answer != spoken(2) {
			t.Errorf("watch ends with an answer of %d bytes", len(end.Answer))
		}
		// However long it spoke, the next request is bounded.
		p.ok("send", id, "And now?", "--wait")
		all := g.questions()
		if q := all[len(all)-1]; q.size > 1<<20 || !strings.HasSuffix(q.last().Content, "And now?") {
			t.Errorf("the next request has %d bytes and %d messages", q.size, len(q.messages))
		}
		p.ok("verify", id)
	})
	t.Run("input-huge-arguments", func(t *testing.T) {
		p := p.on(t)
		p.ok("verify", asks(p, "write it", "Split it into several files"))
		p.ok("verify", asks(p, "tell it", "text-too-long"))
	})

	if mib := p.memory(); mib > roomy {
		t.Errorf("the node took %d MiB", mib)
	} else {
		t.Logf("the node took %d MiB", mib)
	}
	if after := p.state(c, desk).Version; after != before {
		t.Errorf("the desk's log went from version %d to %d", before, after)
	}
	p.ok("send", "desk", "Still there?", "--wait")
	if s := p.state(c, desk); !quiet(s) || answer(p.events(c, desk)) != "I hear." {
		t.Error("the desk does not go on")
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // strings always encode
	return string(text)
}

// overTCP publishes by the bare protocol, as a client does that knows no bound,
// and returns what the server says.
func (p *place) overTCP(id, text string) string {
	p.t.Helper()
	info := got(nodefile.Read(p.dir)).must(p.t)
	_, addr, _ := strings.Cut(info.URL, "@")
	var b bytes.Buffer
	fmt.Fprintf(&b, "CONNECT {\"verbose\":false,\"auth_token\":%q}\r\nPUB rollcall.in.main.%s.lead %d\r\n%s\r\nPING\r\n", info.Token, id, len(text), text)
	conn := got(net.Dial("tcp", addr)).must(p.t)
	defer conn.Close()                           //nolint:errcheck // it is the server that closes
	go func() { _, _ = conn.Write(b.Bytes()) }() // until the server closes
	var said strings.Builder
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
	}
	return said.String()
}
