package main

import (
	"github.com/spf13/cobra"

	"trunkline/handlers/threads/bridge"
)

// Environment of mcp-stdio (threads §2.3).
const (
	envThreadsURL       = "THREADS_URL"
	envThreadsToken     = "THREADS_TOKEN"
	envThreadsTokenFile = "THREADS_TOKEN_FILE"
)

// defaultThreadsURL is where a server listens by default.
const defaultThreadsURL = "http://127.0.0.1:3000"

func newMCPStdioCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp-stdio",
		Short: "Give an MCP client that starts programs the tools of agent threads",
		Long: "Speak the Model Context Protocol on stdin and stdout, and make each tool call a request to a server of agent threads. Ends\n" +
			"with stdin.\n\n" +
			envThreadsURL + " is the server (default " + defaultThreadsURL + "), " + envThreadsTokenFile + " a file with a token, which is read again\n" +
			"when it changes, or " + envThreadsToken + " the token itself.",
		Example: "  THREADS_TOKEN_FILE=token trunkline mcp-stdio\n  THREADS_URL=https://threads.example THREADS_TOKEN_FILE=token trunkline mcp-stdio",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, token, err := threadsServer()
			if err != nil {
				return err
			}
			return bridge.Run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), bridge.Config{URL: url, Token: token})
		},
	}
}
