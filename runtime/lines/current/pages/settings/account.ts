/** /ui/account: who is logged in, how the password is changed, and the tokens of programs. */
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

const PATH = '/ui/account'
const DAY_MS = 86_400_000

const SCOPES: Readonly<Record<TokenScope, string>> = {
  read: 'Read machines, images and events',
  machines: 'Change machines, but write no disk',
  flash: 'Arm machines to be flashed',
  admin: 'Everything, settings and backups too',
}

/** By days, as the form posts them. */
const LIFETIMES = { '30': '30 days', '90': '90 days', '365': 'a year', '': 'no end' } as const

export const accountPages = (context: PageContext): readonly Route[] => [
  { method: 'GET', path: PATH, access: 'page', handle: (event) => show(context, event, null) },
  {
    method: 'POST',
    path: '/ui/account/tokens',
    access: 'page',
    takes: 'form',
    handle: (event, form) => create(context, event, form),
  },
  {
    method: 'POST',
    path: '/ui/account/tokens/:id/revoke',
    access: 'page',
    handle: (event) => revoke(context, event),
  },
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
    messages: html`${messageOf(context, event)}${fresh === null ? null : renderFresh(fresh)}`,
    body: html`${card({
      title: 'Administrator',
      body: html`${factList([
          ['Logged in from', site.peer(event).ip],
          ['Session ends', html`${until}, later when it is used`],
        ])}
        <p class="dim">
          The password is changed on the server: <code>flasher-web password</code> sets a new one
          and ends all sessions. One that stands in the configuration is changed there.
        </p>`,
    })}
    ${card({
      title: 'API tokens',
      id: 'tokens',
      aside: html`<a class="small" href="/docs/api">API</a>`,
      body: html`${renderTokens(await site.tokens.list(), clock)}
        <details>
          <summary>Make a token</summary>
          ${renderForm(site.notices.read(event)?.typed['name'] ?? '')}
        </details>`,
    })}`,
  })
}

const renderFresh = (token: string): Html =>
  banner('done', html`The token was made. It is shown this once: ${copyable(token)}`)

function renderTokens(tokens: readonly TokenRecord[], clock: Clock): Content {
  if (tokens.length === 0) {
    return emptyState(
      'No tokens',
      'A token lets a program do what you allow it, without your password.',
    )
  }
  return html`<ul class="rows">
    ${tokens.map(
      ({ id, name, scopes, created_at, last_used_at, expires_at }) =>
        html`<li>
          <span class="grow"
            ><strong>${name}</strong> ${scopes.map((scope) => html`${tag(scope)} `)}<br />
            <span class="small dim"
              >made ${renderTime(created_at, clock)}, used
              ${renderTime(last_used_at, clock, 'never')}, ends
              ${renderTime(expires_at, clock, 'never')}</span
            ></span
          >
          ${postButton({ action: `${PATH}/tokens/${id}/revoke`, label: 'Revoke', tone: 'danger' })}
        </li>`,
    )}
  </ul>`
}

const renderForm = (name: string): Html =>
  html`<form method="post" action="${PATH}/tokens">
    ${textField({ name: 'name', label: 'Name', required: true, most: 64, value: name, hint: 'Shown in the record of what it did.' })}
    <fieldset>
      <legend>What it may do</legend>
      ${TOKEN_SCOPES.map((scope) => checkField({ name: 'scopes', value: scope, label: html`<strong>${scope}</strong> ${SCOPES[scope]}`, checked: scope === 'read' }))}
    </fieldset>
    ${selectField({ name: 'days', label: 'It ends after', value: '90', options: Object.entries(LIFETIMES).map(([value, text]) => ({ value, text })) })}
    <button class="primary">Make token</button>
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
  // What is not understood is no wish for a token without an end.
  if (!Object.hasOwn(LIFETIMES, days)) return fail(FIELDS.expires_at)
  const end = days === '' ? null : new Date(site.now().getTime() + Number(days) * DAY_MS)
  const expires_at = end?.toISOString() ?? null
  const scopes = [...new Set(form.getAll('scopes'))]
  const made = await createToken(site, event, { name, scopes, expires_at })
  return made.ok ? await show(context, event, made.value.token) : fail(wordsOf(made.refusal))
}

const FIELDS = {
  name: 'A token needs a name of letters, digits, blanks, dots, dashes.',
  scopes: 'Choose what the token may do: at least one thing, and nothing that is not listed.',
  expires_at: 'Choose after how long the token ends.',
} as const

function wordsOf(refusal: TokenRefusal): string {
  switch (refusal.why) {
    case 'fields': {
      const wrong = refusal.fields.map(({ loc }) => loc[1])
      return wrong.includes('name') ? FIELDS.name : FIELDS.scopes
    }
    case 'name-taken':
      return `There is a token ${refusal.name} already.`
    case 'too-many':
      return `There are ${refusal.most} tokens already: revoke those that nobody uses.`
  }
}

async function revoke(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const isGone = await revokeToken(context.site, event, getRouterParam(event, 'id') ?? '')
  return isGone
    ? goTo(event, `${PATH}#tokens`)
    : goBack(context.site, event, PATH, { error: 'There is no such token any more.' })
}
