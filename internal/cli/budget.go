package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// What a run may use when nothing is said.
const (
	defaultCost   = 1.00
	defaultTokens = 500_000
)

// budget reads --budget for a conversation. Money is a limit only where prices
// are known: without one it would never be reached.
func (s *session) budget(text string, o *rollcallv1.OpenConversation) (*rollcallv1.Budget, error) {
	if text == "" {
		if len(s.unpriced(o)) > 0 {
			return &rollcallv1.Budget{Tokens: defaultTokens}, nil
		}
		return &rollcallv1.Budget{CostMicros: api.Micros(defaultCost)}, nil
	}
	b, err := parseBudget(text)
	if err != nil {
		return nil, err
	}
	if without := s.unpriced(o); b.GetCostMicros() > 0 && len(without) > 0 {
		return nil, domain.Refuse("budget-without-price", "a limit in money cannot be kept", "no price is known for "+strings.Join(without, ", "),
			fmt.Sprintf("limit tokens, such as --budget %dt, or put prices into rollcall.yaml", defaultTokens))
	}
	return b, nil
}

// unpriced are the models of a conversation whose price is not known.
func (s *session) unpriced(o *rollcallv1.OpenConversation) []string {
	var names []string
	for _, a := range o.GetAgents() {
		name := cmp.Or(a.GetModel(), s.cfg.Model, defaultModel)
		if scriptedModel(name) {
			name = "scripted" // as the node calls it
		}
		if _, ok := s.cfg.Prices[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// parseBudget reads 2.50 (money), 300000t (tokens) or 0 (none).
func parseBudget(text string) (*rollcallv1.Budget, error) {
	bad := func(why string) error {
		return domain.Refuse("usage", fmt.Sprintf("%q is no budget", printable(text)), why, "write money such as 2.50, tokens such as 300000t, or 0 for no limit")
	}
	number := strings.TrimSuffix(strings.TrimSuffix(text, "tokens"), "t")
	if number != text {
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
		if err != nil || n == 0 {
			return nil, bad("tokens are a whole number above 0")
		}
		return &rollcallv1.Budget{Tokens: n}, nil
	}
	units, err := strconv.ParseFloat(text, 64)
	if err != nil || !(units >= 0) || units > 1e9 {
		return nil, bad("it is no amount")
	}
	micros := api.Micros(units)
	if units > 0 && micros == 0 {
		return nil, bad("it is less than a millionth")
	}
	return &rollcallv1.Budget{CostMicros: micros}, nil
}
