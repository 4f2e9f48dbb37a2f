/** Checks the command line of a wizard without a terminal: a server must decide what is done. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { DEFAULT_SERVER } from './options.ts'

const TEXTS = WIZARD_TEXTS.program

export function requireServer({ values: { mac }, lists }: Arguments): void {
  if (mac === undefined) {
    throw refuse(TEXTS.terminalNeeded, TEXTS.withoutTerminal)
  }
  if (!parseMac(mac).ok) {
    throw refuse(fill(TEXTS.wrongMac, { text: JSON.stringify(mac) }), TEXTS.likeMac)
  }
  const named = lists['server'] ?? []
  const wrong = (named.length === 0 ? [DEFAULT_SERVER] : named).find(
    (server) => !parseServerAddress(server).ok,
  )
  if (wrong !== undefined) {
    throw refuse(fill(TEXTS.wrongServer, { text: JSON.stringify(wrong) }), TEXTS.likeServer)
  }
}

const refuse = (message: string, hint: string) => new Fault('misuse', message, { hint })
