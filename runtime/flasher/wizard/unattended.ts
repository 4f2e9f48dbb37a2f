/** Checks the command line of a wizard without a terminal: a server must decide what is done. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'
import { DEFAULT_SERVER } from './options.ts'

export function requireServer({ values: { mac }, lists }: Arguments): void {
  if (mac === undefined) {
    throw refuse(
      'the wizard needs a terminal',
      'Without one: "flasher flash --image IMAGE --target DISK --yes".',
    )
  }
  if (!parseMac(mac).ok) {
    throw refuse(
      `--mac ${JSON.stringify(mac)} is not a MAC address`,
      'Write it like 52:54:00:12:34:56.',
    )
  }
  const named = lists['server'] ?? []
  const wrong = (named.length === 0 ? [DEFAULT_SERVER] : named).find(
    (server) => !parseServerAddress(server).ok,
  )
  if (wrong !== undefined) {
    throw refuse(
      `--server ${JSON.stringify(wrong)} is not an address`,
      'Write it like http://10.0.0.1:8080.',
    )
  }
}

const refuse = (message: string, hint: string) => new Fault('misuse', message, { hint })
