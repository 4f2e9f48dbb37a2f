/** Current line: opens what sends notifications. */
import { createOutgoing } from '#fleet/notify/outgoing.ts'
import { createReceiverEdits, openReceiverSecrets } from '#fleet/notify/receivers.ts'
import type { MatchesSearch } from '#fleet/notify/rules/receiver.ts'
import { createSender } from '#fleet/notify/sender.ts'
import { transmit } from '#fleet/notify/transmission.ts'
import { readAuthorities } from '#kit/net/authorities.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { ServerLog } from '#kit/terminal/text/server-log.ts'
import { findOwnUrl } from '#server/app/own-address.ts'
import { nameMachine } from '../rules/disarming.ts'
import type { Machine } from '../rules/machine.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import { listenSettingsOf } from './listen-settings.ts'
import type { State } from './state.ts'

interface NotifyDependencies {
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly env: Environment
  now(): Date
}

/** The search of the machines page, which the pages of this line bring. */
type MatchMachines = (machines: readonly Machine[], query: URLSearchParams) => readonly Machine[]

export type Notify = Awaited<ReturnType<typeof openNotify>>

/** Milliseconds. */
const TICK_MS = 1000
const LIMIT_MS = 15_000

/** Sends nothing until `start`. Rejects with a Fault where its secrets cannot be read. */
export async function openNotify({ config, state, log, env, now }: NotifyDependencies) {
  const { database, receivers, messages, journal, machines } = state
  const settings = () => config.current()
  const secrets = await openReceiverSecrets(decideFolders(config).notify, async () => {
    await state.presence?.share()
  })
  const authorities = await readAuthorities(env)
  const own = await findOwnAddress(config)
  const ending = new AbortController()
  const find = createOutgoing(() => ({
    networks: settings().notify.networks,
    ownPorts: [settings().server.port, settings().cache.port],
  }))
  let match: MatchMachines | null = null
  const peek = (text: string) => {
    const mac = parseMac(text)
    return mac.ok ? machines.peek(mac.value) : null
  }
  const matches: MatchesSearch = (search, mac) => {
    const machine = peek(mac)
    if (machine === null || match === null) return false
    return match([machine], new URLSearchParams({ q: search })).length > 0
  }
  const sender = createSender({
    database,
    receivers,
    messages,
    secrets,
    matches,
    findNamed(mac) {
      const machine = peek(mac)
      if (machine === null) return null
      return { name: nameMachine(machine), labels: machine.labels }
    },
    send: (given) =>
      transmit(given, { find, authorities, limitMs: LIMIT_MS, signal: ending.signal }),
    base: () => (settings().server.public_url || own).replace(/\/+$/, ''),
    record: journal.record,
    now,
    log,
  })
  const { record } = journal
  const edits = createReceiverEdits({ receivers, secrets, sender, record, now })
  let timer: NodeJS.Timeout | null = null
  return {
    receivers,
    messages,
    secrets,
    sender,
    edits,
    start(search: MatchMachines): void {
      match = search
      timer ??= setInterval(sender.tick, TICK_MS).unref()
    },
    async [Symbol.asyncDispose]() {
      if (timer !== null) clearInterval(timer)
      ending.abort()
      await sender.settle()
    },
  }
}

function findOwnAddress(config: LineConfig): Promise<string> {
  const { host, port, tls_cert: cert } = listenSettingsOf(config)
  return findOwnUrl({ database: '', host, port, isTls: cert !== '' })
}
