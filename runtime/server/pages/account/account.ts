/** /ui/account: the session, what the line says of its password, and API tokens. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { banner, card, copyable, copyBlock, factList, tag } from '#kit/web/ui/elements.ts'
import { checkField, postButton, selectField, textField } from '#kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { dayOf, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { renderCurl } from '#server/routes/rules/curl-command.ts'
import {
  createToken,
  listScopes,
  listSeenTokens,
  revokeToken,
  type TokenRefusal,
} from '#server/routes/tokens.ts'
import type { TokenRecord } from '#fleet/access/tokens.ts'
import { permits, SCOPES } from '#kit/web/answers/rules/rights.ts'
import type { PageContext } from '../page-context.ts'
import { describeSession, nameCaller } from '#kit/web/ui/who.ts'
import { formAt, pageAt, removalAt, type ContextRoute } from '../context-routes.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { blank, renderCurlBlock } from '../curl-block.ts'
import { questionButton, showRemoval } from '../question.ts'

const PATH = '/ui/account'
const DAY_MS = 86_400_000

export function accountPages<Context extends PageContext>(
  renderPassword: (context: Context) => Html,
): readonly ContextRoute<Context>[] {
  const show = (context: Context, fresh: string | null) =>
    showAccount(context, renderPassword(context), fresh)
  return [
    pageAt(PATH, 'own', (context: Context) => show(context, null), { reach: 'shared' }),
    formAt(
      `${PATH}/tokens`,
      'own',
      async (context: Context, form) => {
        const created = await create(context, form)
        return created.ok ? await show(context, created.value) : created.refusal
      },
      { reach: 'shared' },
    ),
    removalAt(`${PATH}/tokens/:id/revoke`, 'own', askRevocation, revoke, { reach: 'shared' }),
  ]
}

async function showAccount(
  context: PageContext,
  password: Html,
  fresh: string | null,
): Promise<Answer> {
  const clock = context.clock()
  const tokens = await listSeenTokens(context.site, context.event)
  return await context.show({
    title: 'Account',
    actions: postButton({ action: '/ui/logout', label: 'Log out' }),
    messages: html`${context.message()}${renderChanged(context)}${fresh === null ? null : renderFresh(context, fresh)}`,
    body: html`<div class="columns even">
      <div>
        ${card({
          title: nameCaller(context.event),
          body: factList(describeSession(context.event, clock)),
        })}
        ${password}
      </div>
      <div>
        ${card({
          title: 'API tokens',
          id: 'tokens',
          aside: html`<a class="small" href="/docs/api">API documentation</a>`,
          body: html`${renderTokens(context, tokens, clock)}
            <details ${attributes({ open: tokens.length === 0 })}>
              <summary>Create a token</summary>
              ${renderForm(context)}
            </details>`,
        })}
      </div>
    </div>`,
  })
}

function renderOwner({ site }: PageContext, owner: string | null): Content {
  const name = owner === null ? null : (site.people?.store.find(owner)?.name ?? null)
  return name === null ? null : html`belongs to ${name}, `
}

const renderChanged = ({ query }: PageContext): Content =>
  query.get('changed') === 'password'
    ? banner('done', 'Password changed. All other sessions have been logged out.')
    : null

/** The token is on the page once; the command has its variable. */
const renderFresh = (context: PageContext, token: string): Html =>
  html`${banner('done', html`Token created. Copy it now, it will not be shown again: ${copyable(token)}`)}
  ${card({
    body: html`<p>
        Programs send it with each request. A shell keeps it in <code>FLASHER_TOKEN</code>:
      </p>
      ${copyBlock(
        renderCurl({ method: 'GET', url: `${context.contact().baseUrl}/machines` }),
        'The same as a command',
      )}`,
  })}`

function renderTokens(context: PageContext, tokens: readonly TokenRecord[], clock: Clock): Content {
  if (tokens.length === 0) {
    return html`<p class="dim">
      No tokens yet. A token gives a program limited access without your password.
    </p>`
  }
  return html`<ul class="rows">
    ${tokens.map(
      ({ id, name, scopes, owner, created_at, last_used_at, expires_at }) =>
        html`<li>
          <span class="grow"
            ><strong>${name}</strong> ${scopes.map((scope) => html`${tag(scope)} `)}<br />
            <span class="small dim"
              >${renderOwner(context, owner)}${fillHtml(
                'created {created}, used {used}, expires {expires}',
                {
                  created: renderTime(created_at, clock),
                  used: renderTime(last_used_at, clock, 'never'),
                  expires: renderTime(expires_at, clock, 'never'),
                },
              )}</span
            ></span
          >
          ${questionButton({ action: `${PATH}/tokens/${id}/revoke`, label: 'Revoke…', tone: 'danger' })}
        </li>`,
    )}
  </ul>`
}

const PERMITS = {
  read: 'Read machines, images and events',
  machines: 'Change machines, but not flash them',
  flash: 'Arm machines for flashing',
  power: 'Turn machines on and off',
  admin: 'Everything, including settings and backups',
} as const

/** By number of days. */
const LIFETIMES = { '30': '30 days', '90': '90 days', '365': '1 year', '': 'never' } as const

const renderForm = (context: PageContext): Html => {
  const name = context.notice()?.typed['name'] ?? ''
  const own = listScopes(context.site.caller(context.event))
  return html`<form method="post" action="${PATH}/tokens">
      ${textField({ name: 'name', label: 'Name', required: true, maxLength: 64, value: name, hint: 'Shown with the events of the token.' })}
      <fieldset>
        <legend>Scopes</legend>
        ${SCOPES.filter((scope) => permits(own, scope)).map((scope) => checkField({ name: 'scopes', value: scope, label: html`<strong>${scope}</strong> ${PERMITS[scope]}`, checked: scope === 'read' }))}
      </fieldset>
      ${selectField({ name: 'days', label: 'Expires after', value: '90', options: Object.entries(LIFETIMES).map(([value, text]) => ({ value, text: value === '' ? text : `${text} (${dayOf(context.clock(), Number(value))})` })) })}
      <button class="primary">Create token</button>
    </form>
    ${renderCurlBlock(context, [
      {
        method: 'POST',
        path: '/tokens',
        body: { name: name === '' ? blank('name') : name, scopes: ['read'] },
        scope: 'admin',
      },
    ])}`
}

async function create(
  context: PageContext,
  form: URLSearchParams,
): Promise<Result<string, Answer>> {
  const { site } = context
  const name = (form.get('name') ?? '').trim()
  const fail = (error: string) => refuse(context.goBack(PATH, { error, typed: { name } }))
  const days = form.get('days') ?? 'none'
  // An unknown lifetime must not mean never.
  if (!Object.hasOwn(LIFETIMES, days)) return fail('Select when the token expires.')
  const end = days === '' ? null : new Date(site.now().getTime() + Number(days) * DAY_MS)
  const expires_at = end?.toISOString() ?? null
  const scopes = [...new Set(form.getAll('scopes'))]
  const created = await createToken(site, context.event, { name, scopes, expires_at })
  return created.ok ? accept(created.value.token) : fail(describeRefusal(created.refusal))
}

function describeRefusal(refusal: TokenRefusal): string {
  switch (refusal.why) {
    case 'fields': {
      const wrong = refusal.fields.map(({ loc }) => loc[1])
      return wrong.includes('name')
        ? 'Enter a name of letters, digits, spaces, dots and dashes.'
        : 'Select at least one of the listed scopes.'
    }
    case 'beyond':
      return 'Your role does not permit one of these scopes.'
    case 'name-taken':
      return `A token named ${refusal.name} already exists.`
    case 'too-many':
      return `There are already ${refusal.most} tokens: revoke unused ones.`
  }
}

async function askRevocation(context: PageContext): Promise<Answer> {
  const id = getRouterParam(context.event, 'id') ?? ''
  const token = (await listSeenTokens(context.site, context.event)).find((each) => each.id === id)
  if (token === undefined) return tokenGone(context)
  return await showRemoval(context, {
    title: `Revoke token ${token.name}`,
    trail: html`<a href="${PATH}">Account</a>`,
    question: html`Revoke the token <bdi>${token.name}</bdi>?`,
    body: html`<p>
      ${fillHtml(
        'Programs that use it are refused at once. This cannot be undone. It was last used {time}.',
        {
          time: renderTime(token.last_used_at, context.clock(), 'never'),
        },
      )}
    </p>`,
    cancel: `${PATH}#tokens`,
    button: 'Revoke token',
    calls: [{ method: 'DELETE', path: `/tokens/${token.id}`, scope: 'admin' }],
  })
}

const tokenGone = (context: PageContext): Answer =>
  context.goBack(PATH, { error: 'That token no longer exists.' })

async function revoke(context: PageContext): Promise<Answer> {
  const id = getRouterParam(context.event, 'id') ?? ''
  const isOwn = (await listSeenTokens(context.site, context.event)).some((each) => each.id === id)
  const isGone = isOwn && (await revokeToken(context.site, context.event, id))
  return isGone ? context.goTo(`${PATH}#tokens`) : tokenGone(context)
}
