package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Modes of --progress.
const (
	auto      = "auto"
	tty       = "tty"
	plain     = "plain"
	jsonLines = "json"
	quiet     = "quiet"
)

var progressModes = []string{auto, tty, plain, jsonLines, quiet}

// progress shows on stderr what a team is doing.
type progress interface {
	// commit shows what happened; state is the one it led to.
	commit(u api.Update, told []sentence, state *domain.State)
	// text shows a piece of a model's answer as it streams.
	text(api.TextLine)
	// done takes away what is not meant to stay.
	done()
}

// newProgress chooses by --progress, and by what stderr is.
func (s *session) newProgress() progress {
	mode := s.flags.progress
	width := s.Width(s.Err)
	if mode == auto {
		switch {
		case s.flags.json:
			mode = quiet
		case width > 0:
			mode = tty
		default:
			mode = plain
		}
	}
	switch mode {
	case tty:
		if width <= 0 {
			width = 80
		}
		return &screen{plainLines: plainLines{w: s.Err}, width: width, colour: s.env("NO_COLOR") == "" && s.env("TERM") != "dumb", tools: map[string]string{}}
	case plain:
		return &plainLines{w: s.Err}
	case jsonLines:
		return &objects{s: s}
	}
	return nothing{}
}

type nothing struct{}

func (nothing) commit(api.Update, []sentence, *domain.State) {}
func (nothing) text(api.TextLine)                            {}
func (nothing) done()                                        {}

// objects prints every event as its JSON line.
type objects struct{ s *session }

func (o *objects) commit(u api.Update, _ []sentence, _ *domain.State) {
	for _, l := range u.Lines {
		o.s.line(o.s.Err, l)
	}
}

func (o *objects) text(l api.TextLine) { o.s.line(o.s.Err, l) }
func (o *objects) done()               {}

// plainLines prints a line for everything worth telling.
type plainLines struct{ w io.Writer }

func (p *plainLines) commit(u api.Update, told []sentence, _ *domain.State) {
	at := u.Commit.GetTime().AsTime().Local().Format(time.TimeOnly)
	for _, s := range told {
		if !s.quiet {
			fmt.Fprintf(p.w, "%s  %s\n", at, s)
		}
	}
}

func (p *plainLines) text(api.TextLine) {}
func (p *plainLines) done()             {}

// screen is plainLines with a live block below: who works on what, and what it
// cost so far.
type screen struct {
	plainLines
	width  int
	colour bool
	// height of the block as it stands.
	height int
	state  *domain.State
	// tools are the external tools that run, by run; tail and speaker the end of
	// the text that streams.
	tools   map[string]string
	speaker string
	tail    string
}

func (p *screen) commit(u api.Update, told []sentence, state *domain.State) {
	for _, e := range u.Commit.GetEvents() {
		switch {
		case e.GetToolCallStarted() != nil:
			p.tools[e.GetToolCallStarted().GetRun()] = e.GetToolCallStarted().GetName()
		case e.GetToolCallFinished() != nil:
			delete(p.tools, e.GetToolCallFinished().GetRun())
		case e.GetModelReplied() != nil:
			p.speaker, p.tail = "", ""
		}
	}
	p.state = state
	p.erase()
	p.plainLines.commit(u, told, state)
	if u.Live {
		p.draw()
	}
}

func (p *screen) text(l api.TextLine) {
	if l.Member != p.speaker {
		p.speaker, p.tail = l.Member, ""
	}
	p.tail = p.tail + printable(l.Text)
	if r := []rune(p.tail); len(r) > p.width {
		p.tail = string(r[len(r)-p.width:])
	}
	if p.state != nil {
		p.erase()
		p.draw()
	}
}

func (p *screen) done() { p.erase() }

func (p *screen) erase() {
	if p.height > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.height)
		p.height = 0
	}
}

func (p *screen) draw() {
	var lines []string
	for _, m := range p.state.Members {
		if m.Status != rollcallv1.MemberStatus_MEMBER_STATUS_SHUTDOWN {
			lines = append(lines, p.member(m))
		}
	}
	const most = 12
	if more := len(lines) - most; more > 0 {
		lines = append(lines[:most], fmt.Sprintf("  and %d more", more))
	}
	lines = append(lines, p.sum())
	if p.tail != "" {
		lines = append(lines, "  "+oneLine(p.speaker, 16)+" … "+tailOf(p.tail, p.width-24))
	}
	for _, l := range lines {
		l = oneScreenLine(l, p.width)
		if p.colour {
			l = "\x1b[2m" + l + "\x1b[0m"
		}
		fmt.Fprintln(p.w, l)
	}
	p.height = len(lines)
}

func (p *screen) sum() string {
	counts := map[rollcallv1.TaskStatus]int{}
	for _, t := range p.state.Tasks {
		counts[t.Status]++
	}
	parts := []string{fmt.Sprintf("version %d", p.state.Version)}
	if n := len(p.state.Tasks); n > 0 {
		parts = append(parts, fmt.Sprintf("tasks %d/%d", counts[rollcallv1.TaskStatus_TASK_STATUS_COMPLETED], n))
	}
	return " " + strings.Join(append(parts, spent(p.state)), " · ")
}

func tailOf(text string, n int) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	return string(r[max(0, len(r)-max(n, 8)):])
}

// oneScreenLine keeps a line from wrapping, which would spoil the count of
// lines to erase. Wide characters count double.
func oneScreenLine(text string, width int) string {
	used := 0
	for i, r := range text {
		w := runeColumns(r)
		if used+w > width-1 {
			return text[:i]
		}
		used += w
	}
	return text
}
