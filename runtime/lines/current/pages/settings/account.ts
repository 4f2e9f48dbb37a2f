/** /ui/account: the session, how to change the password, and API tokens. */
import { getRouterParam, type H3Event, type HTTPResponse } from 'h3'
import { banner, card, copyable, emptyState, factList, tag } from '../../../../web/ui/elements.ts'
import { checkField, postButton, selectField, textField } from '../../../../web/ui/fields.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import { createToken, revokeToken, type TokenRefusal } from '../../../../web/fleet/tokens.ts'
import {
  TOKEN_SCOPES,
  type TokenRecord,
  type TokenScope,
} from '../../../../services/access/tokens.ts'
import { goBack, goTo } from '../frame/form-answer.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { formRoute, pageRoute } from '../frame/page-routes.ts'
import { isAsked, questionButton, renderRemoval } from '../frame/question.ts'
import { changePassword, renderPassword } from './password-form.ts'

const PATH = '/ui/account'
const DAY_MS = 86_400_000

const SCOPES: Readonly<Record<TokenScope, string>> = {
  read: 'Read machines, images and events',
  machines: 'Change machines, but not flash them',
  flash: 'Arm machines for flashing',
  admin: 'Everything, including settings and backups',
}

/** By number of days. */
const LIFETIMES = { '30': '30 days', '90': '90 days', '365': '1 year', '': 'never' } as const

export const accountPages = (context: PageContext): readonly Route[] => [
  pageRoute(PATH, (event) => show(context, event, null)),
  formRoute(`${PATH}/password`, (event, form) => changePassword(context, event, form)),
  formRoute(`${PATH}/tokens`, (event, form) => create(context, event, form)),
  formRoute(`${PATH}/tokens/:id/revoke`, (event, form) =>
    isAsked(form) ? askRevocation(context, event) : revoke(context, event),
  ),
]

async function show(
  context: PageContext,
  event: H3Event,
  fresh: string | null,
): Promise<HTTPResponse> {
  const { site } = context
  const caller = site.caller(event)
  const clock = context.clock()
  const until =
    caller.kind === 'session' ? renderTime(new Date(caller.expiresAt).toISOString(), clock) : null
  return await context.show(event, {
    title: 'Account',
    section: PATH,
    actions: postButton({ action: '/ui/logout', label: 'Log out' }),
    messages: html`${messageOf(context, event)}${renderChanged(event)}${fresh === null ? null : renderFresh(fresh)}`,
    body: html`${card({
      title: 'Administrator',
      body: factList([
        ['Logged in from', site.peer(event).ip],
        ['Session ends', html`${until}; extended by use`],
      ]),
    })}
    ${renderPassword(context, event)}
    ${card({
      title: 'API tokens',
      id: 'tokens',
      aside: html`<a class="small" href="/docs/api">API</a>`,
      body: html`${renderTokens(await site.tokens.list(), clock)}
        <details>
          <summary>Create a token</summary>
          ${renderForm(site.notices.read(event)?.typed['name'] ?? '')}
        </details>`,
    })}`,
  })
}

const renderChanged = ({ url }: H3Event): Content =>
  url.searchParams.get('changed') === 'password'
    ? banner('done', 'Password changed. All other sessions have been logged out.')
    : null

const renderFresh = (token: string): Html =>
  banner('done', html`Token created. Copy it now, it will not be shown again: ${copyable(token)}`)

function renderTokens(tokens: readonly TokenRecord[], clock: Clock): Content {
  if (tokens.length === 0) {
    return emptyState('No tokens', 'A token gives a program limited access without your password.')
  }
  return html`<ul class="rows">
    ${tokens.map(
      ({ id, name, scopes, created_at, last_used_at, expires_at }) =>
        html`<li>
          <span class="grow"
            ><strong>${name}</strong> ${scopes.map((scope) => html`${tag(scope)} `)}<br />
            <span class="small dim"
              >created ${renderTime(created_at, clock)}, used
              ${renderTime(last_used_at, clock, 'never')}, expires
              ${renderTime(expires_at, clock, 'never')}</span
            ></span
          >
          ${questionButton({ action: `${PATH}/tokens/${id}/revoke`, label: 'Revoke…', tone: 'danger' })}
        </li>`,
    )}
  </ul>`
}

const renderForm = (name: string): Html =>
  html`<form method="post" action="${PATH}/tokens">
    ${textField({ name: 'name', label: 'Name', required: true, maxLength: 64, value: name, hint: 'Shown beside the events of the token.' })}
    <fieldset>
      <legend>Scopes</legend>
      ${TOKEN_SCOPES.map((scope) => checkField({ name: 'scopes', value: scope, label: html`<strong>${scope}</strong> ${SCOPES[scope]}`, checked: scope === 'read' }))}
    </fieldset>
    ${selectField({ name: 'days', label: 'Expires after', value: '90', options: Object.entries(LIFETIMES).map(([value, text]) => ({ value, text })) })}
    <button class="primary">Create token</button>
  </form>`

async function create(
  context: PageContext,
  event: H3Event,
  form: URLSearchParams,
): Promise<HTTPResponse> {
  const { site } = context
  const name = (form.get('name') ?? '').trim()
  const fail = (error: string) => goBack(site, event, PATH, { error, typed: { name } })
  const days = form.get('days') ?? 'none'
  // An unknown value must not become a token that never expires.
  if (!Object.hasOwn(LIFETIMES, days)) return fail(FIELDS.expires_at)
  const end = days === '' ? null : new Date(site.now().getTime() + Number(days) * DAY_MS)
  const expires_at = end?.toISOString() ?? null
  const scopes = [...new Set(form.getAll('scopes'))]
  const created = await createToken(site, event, { name, scopes, expires_at })
  return created.ok
    ? await show(context, event, created.value.token)
    : fail(describeRefusal(created.refusal))
}

const FIELDS = {
  name: 'Enter a name of letters, digits, spaces, dots and dashes.',
  scopes: 'Select at least one of the listed scopes.',
  expires_at: 'Select when the token expires.',
} as const

function describeRefusal(refusal: TokenRefusal): string {
  switch (refusal.why) {
    case 'fields': {
      const wrong = refusal.fields.map(({ loc }) => loc[1])
      return wrong.includes('name') ? FIELDS.name : FIELDS.scopes
    }
    case 'name-taken':
      return `A token named ${refusal.name} already exists.`
    case 'too-many':
      return `There are already ${refusal.most} tokens: revoke unused ones.`
  }
}

async function askRevocation(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const id = getRouterParam(event, 'id') ?? ''
  const token = (await context.site.tokens.list()).find((each) => each.id === id)
  if (token === undefined) return tokenGone(context, event)
  return await context.show(event, {
    title: `Revoke token ${token.name}`,
    section: PATH,
    trail: html`<a href="${PATH}">Account</a>`,
    body: renderRemoval({
      title: html`Revoke the token <bdi>${token.name}</bdi>?`,
      body: html`<p>
        Programs that use it are refused at once, and it cannot be brought back. It was last used
        ${renderTime(token.last_used_at, context.clock(), 'never')}.
      </p>`,
      action: event.url.pathname,
      cancel: `${PATH}#tokens`,
      button: 'Revoke token',
    }),
  })
}

const tokenGone = ({ site }: PageContext, event: H3Event): HTTPResponse =>
  goBack(site, event, PATH, { error: 'That token no longer exists.' })

async function revoke(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const isGone = await revokeToken(context.site, event, getRouterParam(event, 'id') ?? '')
  return isGone ? goTo(event, `${PATH}#tokens`) : tokenGone(context, event)
}
