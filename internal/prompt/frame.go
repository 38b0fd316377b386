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
	body  string
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
	if n := digest(left, unsaid, tools); n != "" {
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
			l.write(&b)
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
// long as there is room. The second result counts those left out.
func (t *turn) words() (string, int) {
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
	return outside(strings.Join(blocks, "\n\n")), first
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

func (l letter) write(b *strings.Builder) {
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
	body := head(l.body, l.limit())
	if len(body) < len(l.body) {
		fmt.Fprintf(b, " shown=%s", quote(fmt.Sprintf("the first %d of %d bytes", len(body), len(l.body))))
	}
	b.WriteString(">" + escape(strings.TrimSpace(body)) + "</message>\n")
}

// digest is the line about what is not shown: who wrote it, and how to read it.
func digest(left []letter, operators int, tools []*rollcallv1.ToolDefinition) string {
	if len(left) == 0 && operators == 0 {
		return ""
	}
	counts := map[string]int{}
	for _, l := range left {
		counts[l.from]++
	}
	if operators > 0 {
		counts[domain.Operator] += operators
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
	return fmt.Sprintf("%d earlier messages are not shown: %s. %s", len(left)+operators, strings.Join(parts, ", "), howToRead(tools))
}

// howToRead names only tools that the run has.
func howToRead(tools []*rollcallv1.ToolDefinition) string {
	has := func(name string) bool {
		return slices.ContainsFunc(tools, func(t *rollcallv1.ToolDefinition) bool { return t.GetName() == name })
	}
	var ways []string
	if has("task_list") {
		ways = append(ways, "task_list shows the board as it is now")
	}
	if has("send_message") {
		ways = append(ways, "with send_message you can ask a sender to put what you need into a file and name its path")
	}
	if len(ways) == 0 {
		return "To read the rest, ask the operator."
	}
	return "To read the rest: " + strings.Join(ways, "; ") + "."
}
