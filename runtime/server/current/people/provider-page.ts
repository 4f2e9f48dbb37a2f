/** /ui/people/provider: how people log in with an OpenID provider, a test of it, and the switch that turns it on. */
import type { ProviderIdentity } from '#fleet/access/rules/person.ts'
import { seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { badge, banner, card, copyable, factList } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { attributes, html, type Html } from '#kit/web/ui/html.ts'
import * as login from '#server/openid/provider-login.ts'
import { describeReach, ROLE_TEXTS } from '#kit/web/ui/who.ts'
import { formAt, pageAt } from '#server/pages/context-routes.ts'
import { recordSettingsEvent, saveConfig } from '#server/pages/settings/file-posts.ts'
import {
  findSaved,
  FIRST_BUTTON,
  readRefusals,
  renderFew,
} from '#server/pages/settings/settings-list.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { fillPreset, PRESETS } from './rules/provider-presets.ts'

const PATH = '/ui/people/provider'
const { PROVIDER_PATH, PROVIDER_SWITCH, PROVIDER_TEST_PATH } = login
type Provider = login.SetProvider

export const PROVIDER_PAGES = [
  pageAt(PATH, 'admin', show),
  formAt(PATH, 'admin', save),
  formAt(`${PATH}/switch`, 'admin', turn),
  pageAt(PROVIDER_TEST_PATH, 'admin', test),
]

const NEEDED = 'issuer name client_id client_secret administrate operate look'
const ADVANCED = 'request_scope name_claim role_claims scopes client_secret_file contact'

const isOff = ({ services }: CurrentContext) => services.store.find(PROVIDER_SWITCH) === 'off'

const findProvider = ({ site }: CurrentContext) => site.people?.configured() ?? null

export function renderProviderLink(context: CurrentContext): Html {
  const provider = findProvider(context)
  const word = provider === null || isOff(context) ? 'Off' : 'On'
  return html`<p class="fold-link" id="provider">
    <a href="${PATH}">Login with a provider</a>
    <span class="small dim"
      >${word}: ${provider?.name ?? 'Keycloak, Entra ID, Google, Okta and others'}</span
    >
  </p>`
}

async function show(context: CurrentContext): Promise<Answer> {
  const { event, query } = context
  const [origin, provider, chosen] = [
    login.originOf(event),
    findProvider(context),
    query.get('for'),
  ]
  const saved = findSaved(context)
  const [, preset = null] = Object.entries(PRESETS).find(([id]) => id === chosen) ?? []
  const filled = preset === null ? {} : fillPreset(preset, provider !== null)
  return await context.show({
    title: 'Login with a provider',
    learn: 'people.html#logging-in-with-a-provider',
    trail: html`<a href="/ui/people">People</a>`,
    messages: html`${context.message()}${saved === null ? null : banner('done', saved)}`,
    body: html`<nav class="tabs" aria-label="Providers">
        ${Object.entries(PRESETS).map(
          ([id, { title }]) =>
            html`<a
              href="${PATH}?for=${id}"
              ${attributes({ 'aria-current': id === chosen ? 'true' : null })}
              >${title}</a
            >`,
        )}
      </nav>
      ${card({
        title: '1. At the provider',
        body: html`<p>Register this server as a confidential web client. ${preset?.register}</p>
          ${factList([
            ['Redirect URI', copyable(`${origin}${PROVIDER_PATH}/callback`)],
            ['After the logout', copyable(`${origin}/ui/login`)],
          ])}`,
      })}
      ${card({ title: '2. On this server', body: await renderForm(context, filled) })}
      ${provider === null ? null : renderSwitch(isOff(context))}`,
  })
}

async function renderForm(
  context: CurrentContext,
  filled: Readonly<Record<string, string>>,
): Promise<Html> {
  const { config } = context.services
  const typed = Object.entries(filled).map(([name, text]) => [name, { text, error: null }] as const)
  const refusals = new Map([...typed, ...readRefusals(context)])
  const view = { paths: await config.listEditPaths(), refusals }
  const list = (keys: string) =>
    renderFew(
      view,
      keys.split(' ').flatMap((key) => config.list().filter(({ name }) => name === `oidc.${key}`)),
    )
  const isOpen = ADVANCED.split(' ').some((key) => refusals.get(`oidc.${key}`)?.error)
  return html`<form method="post" action="${PATH}" class="careful" autocomplete="off">
    ${FIRST_BUTTON} ${list(NEEDED)}
    <details class="fold" ${attributes({ open: isOpen })}>
      <summary><h3>Advanced</h3></summary>
      <div class="folded">${list(ADVANCED)}</div>
    </details>
    <button class="primary">Save</button>
  </form>`
}

const renderSwitch = (off: boolean): Html =>
  card({
    title: '3. Test it and turn it on',
    id: 'switch',
    aside: off ? badge('ready', 'off') : badge('done', 'on'),
    body: html`<p>
        ${off ? 'The login page does not offer it yet.' : 'The login page offers it.'} The test logs
        nobody in and changes
        nothing.${off ? '' : ' After you turn it off, people who are logged in stay logged in.'}
      </p>
      <div class="row">
        <a class="button" href="${PROVIDER_TEST_PATH}">Test the login</a>
        ${postButton({
          action: `${PATH}/switch`,
          values: { to: off ? 'on' : 'off' },
          label: off ? 'Turn on' : 'Turn off',
        })}
      </div>`,
  })

/** A provider that is set for the first time is off before it can be used, until somebody turns it on. */
async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { store } = context.services
  const isFirst = findProvider(context) === null
  if (isFirst) await store.save({ [PROVIDER_SWITCH]: 'off' })
  try {
    return await saveConfig(context, form, { page: PATH })
  } finally {
    if (isFirst && findProvider(context) === null) await store.save({ [PROVIDER_SWITCH]: null })
  }
}

async function turn(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const to = form.get('to') === 'on' ? 'on' : 'off'
  await context.services.store.save({ [PROVIDER_SWITCH]: to === 'on' ? null : 'off' })
  const summary = `Login with ${findProvider(context)?.name ?? 'a provider'} was turned ${to}`
  await recordSettingsEvent(context, 'settings.login.updated', summary, {})
  return context.goTo(`${PATH}#switch`)
}

/** Without an answer of the provider it begins; with one, it shows what that says. */
async function test(context: CurrentContext): Promise<Answer> {
  const { site, event, query } = context
  const [provider, caller, state] = [findProvider(context), site.caller(event), query.get('state')]
  if (provider === null || caller.kind !== 'session')
    throw refuse(404, 'no login provider is set up')
  const states = login.createLoginStates(site)
  const redirectUri = login.redirectUriOf(event)
  const flow = state === null ? states.beginTest(caller.id) : states.readTest(caller.id, state)
  if (flow === null) return context.goBack(PATH, { error: OVER })
  const done =
    state === null
      ? await provider.begin({ ...flow, redirectUri }, true)
      : await provider.finish({ ...flow, redirectUri }, event.url.search)
  if (!done.ok) {
    return context.goBack(PATH, {
      error: `The test failed. ${provider.name}: ${done.refusal.detail}.`,
    })
  }
  return typeof done.value === 'string'
    ? seeOther(done.value)
    : await showSaid(context, provider, done.value)
}

const OVER = 'This test has expired, or was started in another session. Start again.'

async function showSaid(
  context: CurrentContext,
  { name }: Provider,
  identity: ProviderIdentity,
): Promise<Answer> {
  const { role, issuer, subject, values } = identity
  const { oidc } = context.services.config.current()
  const [as = subject] = identity.names
  const person = context.site.people?.store.findByProvider(issuer, subject)
  const because = role === null ? [] : oidc[role].filter((value) => values.includes(value))
  const title = role === null ? 'none' : ROLE_TEXTS[role].title
  return await context.show({
    title: `What ${name} says of ${as}`,
    trail: html`<a href="${PATH}">Login with a provider</a>`,
    messages: person?.blocked_at
      ? banner('failed', `${as} is blocked on this server and cannot log in.`)
      : role === null
        ? banner('needs-you', `${as} cannot log in: none of these values gives a role.`)
        : banner('done', `${as} can log in as ${title}.`),
    body: card({
      body: html`${factList([
          ['Name', as],
          ['Account', subject],
          ...login.describeSaid(identity, oidc.role_claims.join(', ')),
          ['Role', because.length === 0 ? title : `${title}, because of ${because.join(', ')}`],
          ['Sees', role === null ? null : describeReach(identity.labels)],
        ])}
        <p>Nobody was logged in, and nothing was changed.</p>
        <div class="row">
          <a class="button" href="${PROVIDER_TEST_PATH}">Test again</a>
          <a class="button" href="${PATH}#switch">Back</a>
        </div>`,
    }),
  })
}
