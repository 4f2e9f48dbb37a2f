/** Current line: the OpenID provider that `[oidc]` names, made anew where the section changes. */
import { hasAllClaims, identify, listGivenLabels } from '#fleet/access/rules/provider-identity.ts'
import type { Environment } from '#kit/host/shell.ts'
import { accept } from '#kit/foundation/result.ts'
import { createProvider, type Provider } from '#kit/net/openid/provider.ts'
import type { SetProvider } from '#server/openid/provider-login.ts'
import type { LineConfig } from './configuration.ts'

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
