// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and SIGTERM as a question that long work asks: the first one lets it stop at a safe place,
// the second one ends the program.
#ifndef LOCKSTEP_CLI_INTERRUPT_H_
#define LOCKSTEP_CLI_INTERRUPT_H_

namespace lockstep::cli {

void CatchInterrupts();
bool Interrupted();

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_INTERRUPT_H_
