package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/projections"
)

// doctor looks at what only the node can see.
type doctor struct {
	node     *Node
	settings *config.Settings
	store    *eventstore.JetStream
	views    *projections.DB
	nc       *nats.Conn
	footing  footing
}

// Diagnose implements api.Doctor. A tenant hears of its own conversations only;
// an empty one stands for all.
func (d *doctor) Diagnose(ctx context.Context, tenant string, whole bool) ([]api.Check, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	concerns := func(k domain.Key) bool { return tenant == "" || k.Tenant == tenant }
	checks := []api.Check{d.behind(ctx), d.model(), d.quarantine(concerns)}
	if whole {
		all := d.settled(ctx)
		checks = []api.Check{d.storage(all), d.streams(all), d.log(ctx, concerns), checks[0], d.inbox(all), checks[1], d.dead(ctx, concerns), checks[2]}
		if d.footing != onOwn {
			checks = append(checks, d.connection(ctx, all))
		}
	}
	for i := range checks {
		checks[i].Node = d.node.name
	}
	return checks, nil
}

func (d *doctor) model() api.Check {
	script, isScript := config.Script(d.settings.Model)
	switch {
	case isScript:
		return api.Check{Name: "model", Level: api.OK, Found: "the scripted model of " + script}
	case d.settings.Model == "":
		return api.Check{Name: "model", Level: api.Fail, Found: "no model is set", Fix: "set ROLLCALL_MODEL and start the node again"}
	case !d.settings.Key.Set() && d.settings.BaseURL == "":
		return api.Check{Name: "model", Level: api.Fail, Found: d.settings.Model + " at the default address, without a key", Fix: "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none, and start the node again"}
	}
	return api.Check{Name: "model", Level: api.OK, Found: d.settings.Model + " is configured, not tried (rollcall doctor --online asks it)"}
}

func (d *doctor) dead(ctx context.Context, concerns func(domain.Key) bool) api.Check {
	const limit = 1000
	letters, err := d.store.DeadLetters(ctx, limit)
	letters = slices.DeleteFunc(letters, func(l eventstore.DeadLetter) bool { return !concerns(l.Envelope.Key) })
	switch {
	case err != nil:
		return api.Check{Name: "dead letters", Level: api.Fail, Found: err.Error(), Fix: "look at the node's log"}
	case len(letters) == 0:
		return api.Check{Name: "dead letters", Level: api.OK, Found: "none"}
	}
	l := letters[0]
	return api.Check{
		Name: "dead letters", Level: api.Warn,
		Found: fmt.Sprintf("%s messages could never succeed; the newest, of %s, to %s in %s: %s",
			atLeast(len(letters), limit), l.Time.UTC().Format(time.RFC3339), l.Envelope.To, l.Envelope.Key.Conversation, l.Reason),
		Fix: "mend the publisher: it names a conversation or a member that is not there, or sends what is no message",
	}
}

func atLeast(n, limit int) string {
	if n < limit {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("at least %d", n)
}

func (d *doctor) quarantine(concerns func(domain.Key) bool) api.Check {
	set := d.node.actors.Quarantined()
	maps.DeleteFunc(set, func(k domain.Key, _ error) bool { return !concerns(k) })
	if len(set) == 0 {
		return api.Check{Name: "conversations", Level: api.OK, Found: "all can be loaded"}
	}
	var found []string
	fix := "start a node of the newer version: it takes over by itself"
	for key, err := range set {
		found = append(found, key.Conversation+": "+err.Error())
		if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Code != "commit-newer" {
			fix = "mend the cause (restore a backup where the log is damaged), then: rollcall retry CONVERSATION"
		}
	}
	slices.Sort(found)
	return api.Check{
		Name: "conversations", Level: api.Fail, Found: fmt.Sprintf("%d set aside: %s", len(set), strings.Join(found, "; ")), Fix: fix,
	}
}
