/** Reads proxy settings from the environment, in the form that Node's agents take. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

const VARIABLES = ['http_proxy', 'https_proxy'] as const
type Variable = (typeof VARIABLES)[number]

export type ProxySettings = { readonly [Name in Variable | 'no_proxy']?: string }

/**
 * Reads the three variables in either case, lower first. A proxy without a scheme is an http one,
 * as for curl; the refusal is the name of a variable whose value (it may hold a password) is
 * unusable.
 */
export function decideProxies(env: Variables): Result<ProxySettings, Variable> {
  const settings: { [Name in Variable | 'no_proxy']?: string } = {}
  for (const name of VARIABLES) {
    const given = valueOf(env, name)
    const address = given.includes('://') ? given : `http://${given}`
    if (given !== '' && !isHttp(address)) return refuse(name)
    if (given !== '') settings[name] = address
  }
  const direct = valueOf(env, 'no_proxy')
  return accept(direct === '' ? settings : { ...settings, no_proxy: direct })
}

type Variables = Readonly<Record<string, string | undefined>>
const valueOf = (env: Variables, name: string) => env[name] ?? env[name.toUpperCase()] ?? ''
const isHttp = (href: string) => ['http:', 'https:'].includes(URL.parse(href)?.protocol ?? '')
