package mcp_test

import (
	"context"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

type withToken struct{ http.RoundTripper }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+testToken)
	return w.RoundTripper.RoundTrip(r)
}

// T-1: the official SDK's client, in every version that it speaks, connects,
// lists and calls the tools.
func TestSDKClient(t *testing.T) {
	b := newBench(t, nil)
	for _, version := range sdk.SupportedProtocolVersions() {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1"}, nil)
			session, err := client.Connect(ctx, &sdk.StreamableClientTransport{
				Endpoint: "http://" + b.addr + "/mcp", HTTPClient: &http.Client{Transport: withToken{tr}},
			}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if err := session.Ping(ctx, nil); err != nil {
				t.Error(err)
			}
			tools, err := session.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 2 {
				t.Fatalf("tools %v, %v", tools, err)
			}
			path := b.dir + "/sdk.txt"
			res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "openDiff", Arguments: map[string]any{"filePath": path, "newContent": "x"}})
			if err != nil || res.IsError {
				t.Fatalf("openDiff: %+v, %v", res, err)
			}
			res, err = session.CallTool(ctx, &sdk.CallToolParams{Name: "closeDiff", Arguments: map[string]any{"filePath": path}})
			if err != nil || res.IsError || res.Content[0].(*sdk.TextContent).Text != `{"finalContent":"x"}` {
				t.Fatalf("closeDiff: %+v, %v", res, err)
			}
		})
	}
	eventually(t, "sessions closed by the SDK are gone", func() bool { return len(b.server.Sessions()) == 0 })
}
