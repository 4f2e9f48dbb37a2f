/** `flasher-web once`: has a running server boot a machine into something else once, or cancels that. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { printable } from '#kit/foundation/printable.ts'
import { createHttpClient } from '#kit/net/http-client.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import { ask, findOwnServer, readText } from './flash.ts'

const STALL_MS = 10 * 60_000

/** Resolves to the exit code. */
export const once: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const { env, stdout, signal } = environment
  const { path, entry } = readOrder(given)
  await using client = createHttpClient({ env, signal, stallMs: STALL_MS })
  const server = given.values['server'] ?? (await findOwnServer(environment, given))
  const token = env['FLASHER_TOKEN'] ?? null
  const asked = { client, server: server.replace(/\/+$/, ''), token }
  const power = given.switches.has('restart') ? 'restart' : given.switches.has('power')
  const answer =
    entry === null
      ? await ask(asked, path, null, 'DELETE')
      : await ask(asked, path, JSON.stringify({ entry, power }))
  const said = parseJson(await readText(answer))
  const detail = isRecord(said) ? said['detail'] : undefined
  if (typeof detail === 'string') throw new Fault('upstream-failed', printable(detail))
  stdout.write(entry === null ? 'cancelled\n' : 'ordered\n')
  return 0
}

/** `entry` null: the order is cancelled. */
function readOrder({ positionals, switches }: Arguments) {
  const [machine = '', entry = null] = positionals
  const mac = parseMac(machine)
  if (!mac.ok) throw new Fault('misuse', `${machine} is not a MAC address`)
  if (switches.has('cancel') === (entry !== null))
    throw new Fault('misuse', 'name a boot entry, or give --cancel')
  return { path: `/machines/${mac.value}/once`, entry }
}
