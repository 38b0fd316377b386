package domain

import (
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	messagePrefix = "msg"
	runPrefix     = "r"
	teamPrefix    = "team"
)

// letter is a message about to be delivered.
type letter struct {
	kind     rollcallv1.MailKind
	from, to string
	body     *rollcallv1.Body
	replyTo  string
	wait     bool
	mode     rollcallv1.MailMode
	topic    string
	task     string
	about    string
	replaces string
	// hops is how far down a chain of wakes what the framework says stands.
	hops uint32
}

// deliver puts a message into a mailbox and ends the waits it answers.
func (d *Decision) deliver(l letter) (id string) {
	s := d.State()
	id = nth(messagePrefix, s.LastMessage+1)
	hops := d.hops(l)
	quiet := d.quiets(l, hops)
	d.emit(&rollcallv1.MessageDelivered{
		Message: id, Kind: l.kind, From: l.from, To: l.to, Body: l.body, ReplyTo: l.replyTo, WaitForReply: l.wait,
		Mode: l.mode, Topic: l.topic, Task: l.task, About: l.about, AfterRun: d.after(l.kind), Replaces: l.replaces,
		Hops: hops, Quiet: quiet,
	})
	if quiet {
		defer d.tellLoop(id, l, hops)
	}
	to := s.Member(l.to)
	if to == nil || len(to.Waits) == 0 {
		return id
	}
	mail := &Mail{Kind: l.kind, ReplyTo: l.replyTo}
	var answered []string
	for _, w := range to.Waits {
		if answers(mail, w) {
			answered = append(answered, w.Message)
		}
	}
	for _, message := range answered {
		d.emit(&rollcallv1.WaitEnded{Member: to.ID, Message: message, Reason: waitReplied})
	}
	return id
}

// after is the run that must be over before the mail that its tools bring wakes
// somebody; empty where mail wakes at once, as the framework's own does.
func (d *Decision) after(kind rollcallv1.MailKind) string {
	switch kind {
	case rollcallv1.MailKind_MAIL_KIND_BRIEF, rollcallv1.MailKind_MAIL_KIND_TEXT, rollcallv1.MailKind_MAIL_KIND_TASK_READY:
	default:
		return ""
	}
	if from := d.Caller(); from != nil && from.Run != nil && d.contract() != nil && d.contract().Policy().AfterRun {
		return from.Run.ID
	}
	return ""
}

// Topics of control mail.
const (
	controlShutdown = "shutdown"
	controlCancel   = "cancel"
)

// control is the framework's word to a member that acts at once, in the commit
// that delivers it. The mailbox keeps it; the member never reads it.
func (d *Decision) control(m *Member, topic, why string) {
	d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_CONTROL, from: Framework, to: m.ID, body: textBody(topic + ": " + why), topic: topic})
}

// Send is a message from a member to another or to the operator.
type Send struct {
	// To is a name: of a member, Lead, or user.
	To      string
	Text    string
	ReplyTo string
	// Wait asks to sleep until the reply. The Lead cannot.
	Wait bool
}

// Send delivers a member's message. Its id comes back.
func (d *Decision) Send(m Send) (id string, refusal *Refusal) {
	s, from := d.State(), d.Caller()
	if refusal := checkText("the message", m.Text, MaxInline); refusal != nil {
		return "", refusal
	}
	if strings.TrimSpace(m.Text) == "" {
		return "", Refuse("text-empty", "the message is not sent", "its text is empty", "say what the recipient must know or do")
	}
	to, refusal := d.address(m.To)
	if refusal != nil {
		return "", refusal
	}
	if to == from.ID {
		return "", Refuse("message-to-self", "the message is not sent", "it is addressed to you", "put notes into a file; choose one of: "+d.recipients())
	}
	if m.ReplyTo != "" {
		if n, ok := numbered(m.ReplyTo, messagePrefix); !ok || n > s.LastMessage {
			return "", Refuse("message-not-found", "the message is not sent", fmt.Sprintf("reply_to names %q, which is no message of this conversation", cut(m.ReplyTo, 100)),
				"take the id from the mail that you answer, such as msg1, or leave reply_to out")
		}
	}
	if m.Wait && from.Run != nil && from.Run.Delivered && from.Task != "" {
		return "", Refuse("wait-refused", "the message is not sent", "you have delivered your task, which ends your turn", "send it without wait_for_reply")
	}
	if m.Wait && from.IsLead() {
		return "", Refuse("wait-refused", "the message is not sent", "the Lead does not wait for replies",
			"send it without wait_for_reply and end your turn: the answer wakes you")
	}
	return d.deliver(letter{
		kind: rollcallv1.MailKind_MAIL_KIND_TEXT, from: from.ID, to: to, body: textBody(m.Text), replyTo: m.ReplyTo, wait: m.Wait,
	}), nil
}

// address is the member id, or "user", that a name means.
func (d *Decision) address(name string) (string, *Refusal) {
	if ownerName(name) == User {
		return User, nil
	}
	if m := d.State().Recipient(name); m != nil {
		return m.ID, nil
	}
	what := fmt.Sprintf("there is nobody to write to named %q", cut(Name(name), 4*maxName))
	if m := d.State().Named(Name(name)); m != nil {
		return "", Refuse("member-shut-down", what, "that member was shut down", "choose one of: "+d.recipients())
	}
	return "", Refuse("member-not-found", what, "no member has that name", "choose one of: "+d.recipients())
}

// recipients are the names a message can go to.
func (d *Decision) recipients() string {
	names := []string{}
	for _, name := range d.State().aliveNames() {
		if c := d.Caller(); c == nil || name != c.Name {
			names = append(names, name)
		}
	}
	return quoteAll(append(names, User))
}

// postMessage takes mail from outside.
func (d *Decision) postMessage(p *rollcallv1.PostMessage) (string, *Refusal) {
	if refusal := checkBody("the message", p.GetBody()); refusal != nil {
		return "", refusal
	}
	to, refusal := d.member(p.GetTo())
	if refusal != nil {
		return "", refusal
	}
	if to.IsSubagent() {
		return "", Refuse("member-is-subagent", "the message is not delivered", fmt.Sprintf("%s works for one call of %s, and nobody writes to it", to.Name, d.State().DisplayName(to.Parent)),
			"write to one of: "+d.State().idsAndNames())
	}
	if n, ok := numbered(p.GetReplyTo(), messagePrefix); p.GetReplyTo() != "" && (!ok || n > d.State().LastMessage) {
		return "", Refuse("message-not-found", "the message is not delivered", fmt.Sprintf("reply_to names %q, which is no message of this conversation", cut(p.GetReplyTo(), 100)), "rollcall mail lists the messages")
	}
	l := letter{to: to.ID, body: p.GetBody(), replyTo: p.GetReplyTo()}
	switch p.GetKind() {
	case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, rollcallv1.MailKind_MAIL_KIND_UNSPECIFIED:
		to = d.State().addressee(to, p.GetBody().GetText())
		l.kind, l.from, l.to, l.mode = rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Operator, to.ID, modeOf(p.GetMode(), to)
		if l.mode == rollcallv1.MailMode_MAIL_MODE_INTERRUPT && to.Run != nil {
			d.finish(to, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED, Detail: "the operator wrote"})
		}
	case rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:
		l.kind, l.from = p.GetKind(), Framework
	default:
		return "", Refuse("kind-refused", "the message is not delivered", "outsiders cannot send mail of that kind", "choose user_message or framework_alert")
	}
	return d.deliver(l), nil
}

// modeOf resolves the operator's choice: text to the Lead interrupts, to
// another member it steers.
func modeOf(mode rollcallv1.MailMode, to *Member) rollcallv1.MailMode {
	if mode != rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED {
		return mode
	}
	if to.IsLead() {
		return rollcallv1.MailMode_MAIL_MODE_INTERRUPT
	}
	return rollcallv1.MailMode_MAIL_MODE_STEER
}

// member finds a living member by the short id that outsiders use; empty
// means the Lead.
func (d *Decision) member(id string) (*Member, *Refusal) {
	if id == "" {
		id = LeadID
	}
	m := d.State().Member(id)
	what := fmt.Sprintf("there is no member %q to do that with", cut(id, 100))
	switch {
	case m == nil:
		return nil, Refuse("member-not-found", what, "the conversation has no such member", "choose one of: "+d.State().idsAndNames())
	case !m.Alive():
		return nil, Refuse("member-shut-down", fmt.Sprintf("%s (%s) is shut down", m.Name, m.ID), "its team was dissolved, or it was removed; that is for good", "choose one of: "+d.State().idsAndNames())
	}
	return m, nil
}

func (s *State) idsAndNames() string {
	var all []string
	for _, m := range s.Members {
		if m.Alive() && !m.IsSubagent() {
			all = append(all, fmt.Sprintf("%s (%s)", m.ID, m.Name))
		}
	}
	return quoteAll(all)
}
