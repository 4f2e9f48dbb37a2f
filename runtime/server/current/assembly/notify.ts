/** Current line: opens what sends notifications. */
import { createOutgoing } from '#fleet/notify/outgoing.ts'
import { createReceiverEdits, openReceiverSecrets } from '#fleet/notify/receivers.ts'
import type { MatchesSearch } from '#fleet/notify/rules/channel.ts'
import { createSender, transmit } from '#fleet/notify/sender.ts'
import { readAuthorities } from '#kit/net/http-client.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { findOwnUrl } from '#server/app/standing-by.ts'
import { nameMachine } from '#server/current/machines/rules/disarming.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { decideFolders, type LineConfig, listenSettingsOf } from './configuration.ts'
import type { State } from './state.ts'
import { hasAllClaims, identify, listGivenLabels } from '#fleet/access/rules/person.ts'
import { accept } from '#kit/foundation/result.ts'
import { createProvider, type Provider } from '#kit/net/openid/provider.ts'
import type { SetProvider } from '#server/openid/provider-login.ts'

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

/** Current line: the OpenID provider that `[oidc]` names, made anew where the section changes. */
interface ProvidersDependencies {
  readonly config: Pick<LineConfig, 'current' | 'listen'>
  /** For proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly log: { info(message: string): void; warn(message: string): void }
}

type OidcSettings = ReturnType<LineConfig['current']>['oidc']

interface OpenedProvider {
  readonly settings: OidcSettings
  readonly provider: Provider | null
  readonly set: SetProvider | null
}

/** Asks it once whether it is there, in the background; without a provider, nothing is loaded. */
export function openProviders({ config, env, log }: ProvidersDependencies) {
  let opened = open(config.current().oidc)

  function open(settings: OidcSettings): OpenedProvider {
    if (settings.issuer === '') return { settings, provider: null, set: null }
    const name = nameOf(settings)
    let wasLost = false
    const provider = createProvider({
      issuer: settings.issuer,
      clientId: settings.client_id,
      clientSecret: settings.client_secret,
      clientSecretFile: settings.client_secret_file,
      scope: settings.request_scope,
      env,
      onChange(failure) {
        if (failure !== null) log.warn(`people cannot log in with ${name}: ${failure.detail}`)
        else if (wasLost) log.info(`people can log in with ${name} again`)
        wasLost = failure !== null
      },
    })
    void provider.check()
    return { settings, provider, set: toSetProvider(provider, settings) }
  }

  function current(): SetProvider | null {
    const settings = config.current().oidc
    if (settings !== opened.settings) {
      const isSame = JSON.stringify(settings) === JSON.stringify(opened.settings)
      if (!isSame) opened.provider?.close()
      opened = isSame ? { ...opened, settings } : open(settings)
    }
    return opened.set
  }
  config.listen(() => void current())

  return { current, [Symbol.dispose]: () => opened.provider?.close() }
}

const nameOf = ({ name, issuer }: OidcSettings): string => name || new URL(issuer).host

function toSetProvider(provider: Provider, settings: OidcSettings): SetProvider {
  const { look, operate, administrate } = settings
  const mapping = {
    nameClaim: settings.name_claim,
    roleClaims: settings.role_claims,
    values: { look, operate, administrate },
    scopes: settings.scopes,
  }
  return {
    issuer: settings.issuer,
    name: nameOf(settings),
    scopeLabels: listGivenLabels(settings.scopes),
    contact: settings.contact,
    begin: provider.begin,
    async finish(flow, search) {
      const said = await provider.finish(flow, search, (claims) => hasAllClaims(claims, mapping))
      return said.ok ? accept(identify(said.value, mapping)) : said
    },
    findLogout: provider.findLogout,
    failure: provider.failure,
  }
}
