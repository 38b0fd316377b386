package api

import "context"

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
	return inJSON[Answer](verb, req, func(data []byte) ([]byte, error) { return c.ask(ctx, prefixAdmin+verb, data, false) })
}
