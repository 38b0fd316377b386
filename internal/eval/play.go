package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Host is a node in a data directory of its own.
type Host interface {
	// Client of the node that runs now.
	Client() *api.Client
	// Restart ends the node at once, as a crash does, and starts another on what
	// it left.
	Restart(ctx context.Context) error
	Close() error
}

// player plays one case once.
type player struct {
	host    Host
	c       Case
	alone   bool
	id      string
	inputs  map[string]string // hash by path, of the Lead's workspace at the beginning
	given   string            // all that was said and shown so far
	commits []*rollcallv1.Commit
	state   *domain.State
	stops   []restart
	made    []string // fabricated at some rest, before the operator spoke
	result  Result
}

// play opens a conversation, lets it come to rest, does what the operator does
// there, and judges what it came to.
func play(ctx context.Context, host Host, c Case, alone bool, name string, budget *rollcallv1.Budget) (Play, *book) {
	p := &player{host: host, c: c, alone: alone, id: api.NewID(), inputs: map[string]string{}}
	err := p.run(ctx, name, budget)
	if err != nil {
		p.quiet(ctx)
	}
	return p.judge(err)
}

func (p *player) run(ctx context.Context, name string, budget *rollcallv1.Budget) error {
	if err := p.open(ctx, name, budget); err != nil {
		return err
	}
	if err := p.rest(ctx); err != nil {
		return err
	}
	for _, s := range p.c.Steps {
		acts, to, message := true, "", ""
		if s.Asked {
			acts, to, message = read(p.commits).asks(s)
		}
		if !acts {
			break
		}
		p.made = p.c.fabricated(p.given, p.result)
		if s.Restart {
			if err := p.restart(ctx); err != nil {
				return err
			}
		}
		post := &rollcallv1.PostMessage{
			To: to, ReplyTo: message, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Body: &rollcallv1.Body{Text: s.Say},
		}
		p.given += "\n" + s.Say
		if _, err := p.host.Client().Send(ctx, p.id, post); err != nil {
			return err
		}
		if err := p.rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open begins the conversation: the same for every model but for its name.
func (p *player) open(ctx context.Context, name string, budget *rollcallv1.Budget) error {
	client := p.host.Client()
	objective, contract := p.c.Objective, "none"
	if !p.alone {
		contract = "dag"
		if p.c.Hint != "" {
			objective += "\n\n" + p.c.Hint
		}
	}
	o := &rollcallv1.OpenConversation{
		Conversation: p.id, Name: name, Contract: contract, Budget: budget, Objective: &rollcallv1.Body{Text: objective},
	}
	config.DefaultTeam().Apply(o)
	p.given = objective
	paths, files := p.c.Inputs()
	for _, path := range paths {
		blob, err := client.Upload(ctx, p.id, []byte(files[path]))
		if err != nil {
			return err
		}
		o.Files = append(o.Files, &rollcallv1.FileChange{Path: path, Blob: blob})
		p.inputs[path] = hashOf(files[path])
		p.given += "\n" + files[path]
	}
	_, err := client.Open(ctx, o)
	return err
}

// rest follows the conversation until there is more than before and nothing is
// due, and keeps what it came to.
func (p *player) rest(ctx context.Context) error {
	before := len(p.commits)
	err := p.host.Client().Follow(ctx, p.id, uint64(before)+1, func(u api.Update) error {
		if u.Commit == nil {
			return nil
		}
		if p.state == nil {
			o := u.Commit.GetEvents()[0].GetConversationOpened()
			p.state = domain.New(domain.Key{Tenant: o.GetTenant(), Conversation: o.GetConversation()})
		}
		p.state.Evolve(u.Commit)
		p.commits = append(p.commits, u.Commit)
		if u.Live && p.state.Opened && len(domain.Due(p.state)) == 0 {
			return api.ErrStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.keep(ctx)
}

// keep fetches the answer and what was delivered so far.
func (p *player) keep(ctx context.Context) error {
	client, b := p.host.Client(), read(p.commits)
	p.result = Result{Files: map[string]string{}}
	if n := len(b.replies); n > 0 {
		text, err := client.BodyText(ctx, p.id, b.replies[n-1])
		if err != nil {
			return err
		}
		p.result.Answer = text
	}
	list, err := client.Files(ctx, api.ReadRequest{Conversation: p.id, AtLeast: uint64(len(p.commits))})
	if err != nil {
		return err
	}
	delivered := map[string]bool{}
	for _, t := range b.tasks {
		for _, path := range t.paths {
			if !t.open || len(t.done) > 0 {
				delivered[t.by+"/"+path] = true
			}
		}
	}
	for _, f := range list.Files {
		// The Lead's own files are delivered by being there.
		own := f.MemberID == domain.LeadID && p.inputs[f.Path] != f.SHA256
		if !own && !delivered[f.MemberID+"/"+f.Path] {
			continue
		}
		data, err := client.Blob(ctx, p.id, api.BlobRef(f.BlobRef))
		if err != nil {
			return err
		}
		p.result.Files[f.Member+"/"+f.Path] = string(data)
	}
	return nil
}

// restart kills the node. Members that answer the roll have been rebuilt: what
// they would do by themselves, they do from here on.
func (p *player) restart(ctx context.Context) error {
	p.stops = append(p.stops, restart{events: read(p.commits).events})
	if err := p.host.Restart(ctx); err != nil {
		return fmt.Errorf("restart the node: %w", err)
	}
	_, err := p.host.Client().Roll(ctx, api.ReadRequest{Conversation: p.id})
	return err
}

// quiet keeps a conversation that is given up from costing more.
func (p *player) quiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = p.host.Client().Pause(ctx, p.id) // it may not be there
}

// judge looks at quality, conduct and promises, each by its own evidence.
func (p *player) judge(failed error) (Play, *book) {
	b := read(p.commits)
	out := Play{Case: p.c.Name, Arm: Team, Conversation: p.id, Answer: p.result.Answer}
	if p.alone {
		out.Arm = Alone
	}
	for path := range p.result.Files {
		out.Files = append(out.Files, path)
	}
	slices.Sort(out.Files)
	out.Quality = p.c.judge(p.given, p.result).with(p.made)
	out.Conduct, out.Notes = p.c.conduct(b, p.alone)
	out.Broken, out.Restarts = broken(b, p.stops), len(p.stops)
	if p.state != nil {
		u := p.state.Used
		out.Usage = Usage{
			Seconds: b.last.Sub(b.first).Seconds(), Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Cost: api.Units(u.CostMicros),
		}
		v := api.VerdictOf(p.state)
		out.Status, out.Exit = v.Status, v.Exit
		if failed == nil && v.Exit != 0 {
			out.Broken = append(out.Broken, fmt.Sprintf("it ended as %s (%d): %s", v.Status, v.Exit, v.Why))
		}
	}
	if failed != nil {
		out.Quality.Success = false
		out.Error = reason(failed)
	}
	return out, b
}

// with adds what was made up on the way.
func (q Quality) with(made []string) Quality {
	for _, m := range made {
		if !slices.Contains(q.Fabricated, m) {
			q.Fabricated = append(q.Fabricated, m)
		}
	}
	q.Success = q.Success && len(q.Fabricated) == 0
	return q
}

func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not come to rest in its time"
	}
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		return strings.TrimSuffix(r.What+": "+r.Why, ": ") + " [" + r.Code + "]"
	}
	return err.Error()
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
