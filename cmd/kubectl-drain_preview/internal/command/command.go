// Package command is the command line: what is asked, of what, and how the answer is printed.
package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/output"
	"cozy-kubevirt/cmd/kubectl-drain_preview/internal/source"
	"cozy-kubevirt/cmd/kubectl-drain_preview/report"
)

const about = `What the next drain of a node, and the next upgrade of KubeVirt, do to each VM.

It only lists. A node is judged as if it alone were drained, and only by its VMs:
other pods may hold a drain up as well. Whether other nodes have room is not
looked at.

Exit status: 0 if the drains would end, 3 if a VM would block one, 1 if that
could not be answered.`

const examples = `  # every node
  kubectl drain-preview

  # one node, in a script
  kubectl drain-preview node-a -o json

  # from a dump, on another machine
  kubectl drain-preview -f dump.yaml.gz node-a`

// options are the flags.
type options struct {
	genericiooptions.IOStreams
	config        *genericclioptions.ConfigFlags
	allNamespaces bool
	selector      string
	dump          string
	format        string
}

// Run runs the command and returns its exit status.
func Run(args []string, streams genericiooptions.IOStreams) int {
	o := &options{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	status := report.ExitUnanswered
	cmd := &cobra.Command{
		Use:           "kubectl drain-preview [NODE...]",
		Short:         "What a drain and an upgrade of KubeVirt will do to each VM",
		Long:          about,
		Example:       examples,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			r, err := o.answer(cmd, nodes)
			if err != nil {
				return err
			}
			if err := output.Print(o.Out, r, o.format, colourful(o.Out)); err != nil {
				return err
			}
			status = r.ExitStatus()
			return nil
		},
	}
	o.addFlags(cmd)
	cmd.SetArgs(args)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintln(streams.ErrOut, "error:", err)
		return report.ExitUnanswered
	}
	if helped, _ := cmd.Flags().GetBool("help"); helped {
		return report.ExitEnds
	}
	return status
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.config.AddFlags(flags)
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "VMs of all namespaces, as without --namespace")
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector for the VMIs")
	flags.StringVarP(&o.dump, "filename", "f", "", "read a dump of `kubectl get -o yaml` instead of a cluster; - is standard input")
	flags.StringVarP(&o.format, "output", "o", "", "wide, json, yaml or markdown instead of the table")
}

// answer reads what the question is about, and answers it.
func (o *options) answer(cmd *cobra.Command, nodes []string) (*report.Report, error) {
	asked := report.Selection{Nodes: nodes}
	if err := output.Known(o.format); err != nil {
		return nil, err
	}
	if !o.allNamespaces {
		asked.Namespace = *o.config.Namespace
	}
	var err error
	if asked.Labels, err = labels.Parse(o.selector); err != nil {
		return nil, fmt.Errorf("-l %q: %w", o.selector, err)
	}
	objects, err := o.read(cmd, asked.Namespace)
	if err != nil {
		return nil, err
	}
	return report.Build(objects, asked)
}

func (o *options) read(cmd *cobra.Command, namespace string) (*source.Objects, error) {
	spinner := startSpinner(o.ErrOut)
	defer spinner.stop()
	if o.dump != "" {
		spinner.say("reading the dump")
		return o.readDump()
	}
	config, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1 // a dozen lists, page by page, one after the other
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return source.Cluster(cmd.Context(), client, namespace, func(kind source.Kind) { spinner.say("listing " + string(kind)) })
}

func (o *options) readDump() (*source.Objects, error) {
	var from io.Reader = o.In
	if o.dump != "-" {
		file, err := os.Open(o.dump)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	objects, err := source.Dump(from)
	if err == nil && len(objects.VMIs)+len(objects.Nodes) == 0 {
		err = errors.New("it has neither VMIs nor nodes; README.md, \"Before you drain\", says how to make one")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.dump, err)
	}
	return objects, nil
}

// colourful says whether colour may be used: on a terminal, unless NO_COLOR is set (no-color.org).
func colourful(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && isTerminal(w) }

func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
