package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// frames plays a small team to a screen and returns what was written.
func frames(t *testing.T, width int, colour bool) string {
	t.Helper()
	k := domaintest.Open(t, &domain.Rules{Contracts: contract.All(), DefaultModel: "m"}, "mailbox")
	domaintest.Team(t, k, "Backend", "Фронтенд с очень длинным именем")
	k.Do(domaintest.Say("", "make a page"))
	k.Acts("lead", "task_create", domaintest.Args{"title": "the API", "description": "answer", "owner": "Backend"})
	k.Acts("m1", "task_update", domaintest.Args{"task_id": "t1", "owner": "Backend", "status": "in_progress"})
	var out bytes.Buffer
	p := &screen{plainLines: plainLines{w: &out}, width: width, colour: colour, tools: map[string]string{}}
	teller, state := newTeller(), domain.New(domaintest.Key)
	for i, c := range k.Commits {
		c.Time = timestamppb.New(time.Date(2026, 1, 1, 9, 0, i, 0, time.Local))
		state.Evolve(c)
		p.commit(api.Update{Commit: c, Live: true}, teller.hear(c), state)
	}
	p.text(api.TextLine{Member: "Backend", Text: "thinking about\x1b[2J the "})
	p.text(api.TextLine{Member: "Backend", Text: strings.Repeat("long ", 100)})
	p.done()
	return out.String()
}

func TestScreen(t *testing.T) {
	goldenFile(t, "screen.txt", strings.ReplaceAll(frames(t, 80, false), "\x1b", "^"))
}

// No line of the block wraps, on any width, and nothing of it stays.
func TestScreenFits(t *testing.T) {
	for _, width := range []int{20, 40, 80, 200} {
		text := frames(t, width, false)
		height := 0
		for line := range strings.Lines(text) {
			for {
				i := strings.Index(line, "\x1b[J")
				if i < 0 {
					break
				}
				height = 0
				line = line[i+3:]
			}
			if strings.HasPrefix(line, " ") { // of the block
				height++
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n >= width {
					t.Errorf("width %d: a line of %d: %q", width, n, line)
				}
			}
		}
		if height != 0 || !strings.HasSuffix(text, "\x1b[J") {
			t.Errorf("width %d: %d lines of the block stay", width, height)
		}
		if strings.Count(text, "\x1b[2J") > 0 {
			t.Error("a member's text clears the screen")
		}
	}
	if text := frames(t, 80, true); !strings.Contains(text, "\x1b[2m") {
		t.Error("no colour where it is wanted")
	}
}

func TestProgressModes(t *testing.T) {
	for _, c := range []struct {
		mode     string
		json     bool
		width    int
		expected string
	}{
		{auto, false, 0, "*cli.plainLines"},
		{auto, false, 80, "*cli.screen"},
		{auto, true, 80, "cli.nothing"},
		{plain, true, 80, "*cli.plainLines"},
		{tty, false, 0, "*cli.screen"},
		{jsonLines, false, 0, "*cli.objects"},
		{quiet, false, 80, "cli.nothing"},
	} {
		con := newConsole(t)
		con.Width = func(io.Writer) int { return c.width }
		s := &session{App: &con.App, flags: flags{json: c.json, progress: c.mode}}
		if got := fmt.Sprintf("%T", s.newProgress()); got != c.expected {
			t.Errorf("%+v shows progress by %s", c, got)
		}
	}
}
