// Package python runs the user's own Python code in an experiment: the operators "python", and the processes that do their work.
//
// A main process is one interpreter, with what the user's modules made of it. It holds the objects that the experiment names; stage
// processes are forked from it, so that they hold them too. A helper, the Python package pipectl_python, travels in the binary and is
// handed to the interpreter in memory: nothing is installed. Control messages go through sockets, data through an arena: memory that
// this process and all of those share.
package python
