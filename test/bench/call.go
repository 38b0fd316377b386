package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// post asks the system.
func (p *process) post(ctx context.Context, path string, in request) (out answer, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	return p.ask(ctx, http.MethodPost, path, body)
}

func (p *process) ask(ctx context.Context, method, path string, body []byte) (out answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	res, err := client.Do(req)
	if err != nil {
		return out, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return out, err
	case res.StatusCode == http.StatusNotImplemented:
		return out, errNone
	case res.StatusCode != http.StatusOK:
		return out, fmt.Errorf("%s %s: %s: %s", p.name, path, res.Status, bytes.TrimSpace(data))
	}
	return out, json.Unmarshal(data, &out)
}

func (p *process) turn(ctx context.Context, agent, id string) error {
	_, err := p.post(ctx, "/turn", request{Agent: agent, Text: textOf(id)})
	return err
}

func (p *process) answered(ctx context.Context, agent string) ([]string, error) {
	out, err := p.ask(ctx, http.MethodGet, "/state?agent="+agent, nil)
	return out.IDs, err
}
