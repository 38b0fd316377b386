package api

import (
	"context"
	"encoding/json"
	"fmt"
)

// Nodes lists the nodes of the installation. Only those who may do what nodes
// may can ask.
func (c *Client) Nodes(ctx context.Context) (NodesAnswer, error) {
	return admin[NodesAnswer](ctx, c, "nodes", hereRequest{})
}

// Drain has a node hand over all it works on and take nothing more, also after
// a restart; off takes it back.
func (c *Client) Drain(ctx context.Context, node string, off bool) (NodesAnswer, error) {
	return admin[NodesAnswer](ctx, c, "drain", drainRequest{Node: node, Off: off})
}

// DoctorOfAll has the nodes examine themselves and what is of every tenant.
func (c *Client) DoctorOfAll(ctx context.Context) (DoctorAnswer, error) {
	return admin[DoctorAnswer](ctx, c, "doctor", ReadRequest{})
}

func admin[Answer any](ctx context.Context, c *Client, verb string, req any) (Answer, error) {
	var out Answer
	data, err := Marshal(req)
	if err != nil {
		return out, err
	}
	body, err := c.ask(ctx, prefixAdmin+verb, data, false)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("read the answer of %s: %w", verb, err)
	}
	return out, nil
}
