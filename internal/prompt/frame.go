package prompt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A letter is one message as it will be shown.
type letter struct {
	event *rollcallv1.MessageDelivered
	at    time.Time
	from  string
	// body is what may be shown of it, size how much there is in bytes.
	body string
	size int
}

// open reads a message that was consumed.
func open(m *rollcallv1.MessageRef, names map[string]string, src Source) (letter, error) {
	event, at, err := src.Event(m.GetRef())
	if err != nil {
		return letter{}, fmt.Errorf("message %s: %w", m.GetMessage(), err)
	}
	e := event.GetMessageDelivered()
	if e == nil || e.GetMessage() != m.GetMessage() {
		return letter{}, fmt.Errorf("message %s: %w: version %d holds another event", m.GetMessage(), ErrMissing, m.GetRef().GetVersion())
	}
	body, err := src.Body(e.GetBody())
	if err != nil {
		return letter{}, fmt.Errorf("message %s: %w", m.GetMessage(), err)
	}
	body = strings.ToValidUTF8(body, "\uFFFD")
	return letter{event: e, at: at, from: sender(e, names), body: body, size: len(body)}, nil
}

// sender is the name to show. A member named as one of the fixed parties is
// shown with its id; in the frame the operator never speaks.
func sender(e *rollcallv1.MessageDelivered, names map[string]string) string {
	id := e.GetFrom()
	switch {
	case id == domain.Operator && e.GetKind() != rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		return domain.Framework
	case id == domain.Operator || id == domain.Framework:
		return id
	}
	name := names[id]
	switch fold(strings.TrimSpace(name)) {
	case "":
		return id
	case domain.Operator, domain.Framework, domain.User:
		return name + " (" + id + ")"
	}
	return name
}

// operators reports whether the letter is the operator's words: all others
// stand in the frame, whatever they say.
func (l letter) operators() bool {
	return l.event.GetKind() == rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE && l.event.GetFrom() == domain.Operator
}

// A turn gathers what one user message holds.
type turn struct {
	notices  []string
	mail     []letter
	operator []letter
}

func (t *turn) empty() bool {
	return len(t.notices) == 0 && len(t.mail) == 0 && len(t.operator) == 0
}

func (t *turn) add(l letter) {
	if l.operators() {
		t.operator = append(t.operator, l)
	} else {
		t.mail = append(t.mail, l)
	}
}

// render is the content of the user message: one frame, unless there is
// nothing for it, then the operator's words, one block a message.
func (t *turn) render(tools []*rollcallv1.ToolDefinition) string {
	words, unsaid := t.words()
	shown, left := fit(t.mail)
	notices := t.notices
	if n := digest(append(left, unsaid...), tools); n != "" {
		notices = append(slices.Clone(notices), n)
	}
	if len(notices) == 0 && len(shown) == 0 && words == "" {
		notices = []string{"You were woken by an empty message."}
	}
	var b strings.Builder
	if len(notices) > 0 || len(shown) > 0 {
		b.WriteString("<" + frameTag + ">\n")
		for _, n := range notices {
			b.WriteString("<notice>" + escape(n) + "</notice>\n")
		}
		for _, l := range shown {
			l.write(&b, l.limit())
		}
		b.WriteString("</" + frameTag + ">")
		if words != "" {
			b.WriteString("\n\n")
		}
	}
	b.WriteString(words)
	return b.String()
}

// words are the operator's, the newest message always in full, older ones as
// long as there is room. The second result are those left out.
func (t *turn) words() (string, []letter) {
	room := MaxFrameBytes
	first := len(t.operator)
	for first > 0 {
		size := len(t.operator[first-1].body)
		if first < len(t.operator) && size > room {
			break
		}
		if first < len(t.operator) {
			room -= size
		}
		first--
	}
	var blocks []string
	for _, l := range t.operator[first:] {
		if s := clean(l.body); s != "" {
			blocks = append(blocks, s)
		}
	}
	return outside(strings.Join(blocks, "\n\n")), t.operator[:first]
}

func (l letter) limit() int {
	if l.event.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF {
		return MaxFrameBytes
	}
	return MaxMailBytes
}

// fit chooses what a frame shows: briefs, then the newest, in their order. The
// second result is what does not fit.
func fit(mail []letter) (shown, left []letter) {
	count, bytes := MaxMail, MaxFrameBytes
	keep := make([]bool, len(mail))
	take := func(i int, always bool) bool {
		size := min(len(mail[i].body), mail[i].limit())
		if !always && (count < 1 || size > bytes) {
			return false
		}
		count, bytes, keep[i] = count-1, bytes-size, true
		return true
	}
	for i, l := range mail {
		if l.event.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF {
			take(i, true)
		}
	}
	for i := len(mail) - 1; i >= 0; i-- {
		if !keep[i] && !take(i, i == len(mail)-1) {
			break
		}
	}
	for i, l := range mail {
		if keep[i] {
			shown = append(shown, l)
		} else {
			left = append(left, l)
		}
	}
	return shown, left
}

func (l letter) write(b *strings.Builder, limit int) {
	e := l.event
	fmt.Fprintf(b, "<message id=%s from=%s kind=%s time=%s", quote(e.GetMessage()), quote(l.from), quote(domain.Word(e.GetKind())), quote(l.at.UTC().Format(time.RFC3339)))
	for _, a := range [...][2]string{{"reply_to", e.GetReplyTo()}, {"about", e.GetAbout()}, {"task", e.GetTask()}, {"topic", e.GetTopic()}} {
		if a[1] != "" {
			b.WriteString(" " + a[0] + "=" + quote(a[1]))
		}
	}
	if e.GetWaitForReply() {
		b.WriteString(` wait_for_reply="true"`)
	}
	body := head(l.body, limit)
	if len(body) < l.size {
		fmt.Fprintf(b, " shown=%s", quote(fmt.Sprintf("the first %d of %d bytes", len(body), l.size)))
	}
	b.WriteString(">" + escape(body) + "</message>\n")
}

// digest is the line about what is not shown: who wrote it, and how to read it.
func digest(left []letter, tools []*rollcallv1.ToolDefinition) string {
	if len(left) == 0 {
		return ""
	}
	counts := map[string]int{}
	for _, l := range left {
		counts[l.from]++
	}
	senders := make([]string, 0, len(counts))
	for name := range counts {
		senders = append(senders, name)
	}
	slices.SortFunc(senders, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var more int
	if len(senders) > 20 {
		for _, name := range senders[20:] {
			more += counts[name]
		}
		senders = senders[:20]
	}
	parts := make([]string, 0, len(senders)+1)
	for _, name := range senders {
		parts = append(parts, fmt.Sprintf("%d from %s", counts[name], name))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d from others", more))
	}
	oldest := slices.MinFunc(left, func(a, b letter) int { return a.at.Compare(b.at) }).event.GetMessage()
	return fmt.Sprintf("%d earlier messages are not shown: %s; the oldest is %s. %s", len(left), strings.Join(parts, ", "), oldest, howToRead(tools))
}

// howToRead names only tools that the run has.
func howToRead(tools []*rollcallv1.ToolDefinition) string {
	if slices.ContainsFunc(tools, func(t *rollcallv1.ToolDefinition) bool { return t.GetName() == domain.ReadMail }) {
		return "Read what you need of the rest with " + domain.ReadMail + "."
	}
	return "To read the rest, ask the operator."
}
