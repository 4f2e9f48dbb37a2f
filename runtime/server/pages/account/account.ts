/** /ui/account: the session, what the line says of its password, and API tokens. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { banner, card, copyable, copyBlock, factList, tag } from '#kit/web/ui/elements.ts'
import { checkField, postButton, selectField, textField } from '#kit/web/ui/fields.ts'
import { attributes, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { renderCurl } from '#server/routes/rules/curl-command.ts'
import { createToken, listScopes, revokeToken, type TokenRefusal } from '#server/routes/tokens.ts'
import type { TokenRecord } from '#fleet/access/tokens.ts'
import { reachOf, permits, SCOPES } from '#kit/web/answers/rules/rights.ts'
import { describeReach, type PageContext } from '../page-context.ts'
import { formAt, pageAt, removalAt, type ContextRoute } from '../context-routes.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { personOf } from '#kit/web/answers/caller.ts'
import { blank, renderCurlBlock } from '../curl-block.ts'
import { questionButton, showRemoval } from '../question.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.account

const PATH = '/ui/account'
const DAY_MS = 86_400_000

const LIFETIMES = t.tokens.lifetimes

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
  const { site } = context
  const caller = site.caller(context.event)
  const clock = context.clock()
  const tokens = await listOwn(context)
  const until =
    caller.kind === 'session' ? renderTime(new Date(caller.expiresAt).toISOString(), clock) : null
  return await context.show({
    title: PAGES.frame.titles.account,
    section: PATH,
    actions: postButton({ action: '/ui/logout', label: t.logOut }),
    messages: html`${context.message()}${renderChanged(context)}${fresh === null ? null : renderFresh(context, fresh)}`,
    body: html`<div class="columns even">
      <div>
        ${card({
          title: renderWho(context),
          body: factList([
            ...describePerson(context),
            [t.session.address, site.peer(context.event).ip],
            [t.session.end, fillHtml(t.session.extended, { time: until })],
          ]),
        })}
        ${password}
      </div>
      <div>
        ${card({
          title: t.tokens.title,
          id: 'tokens',
          aside: html`<a class="small" href="/docs/api">${t.tokens.api}</a>`,
          body: html`${renderTokens(context, tokens, clock)}
            <details ${attributes({ open: tokens.length === 0 })}>
              <summary>${t.tokens.create}</summary>
              ${renderForm(context)}
            </details>`,
        })}
      </div>
    </div>`,
  })
}

const renderWho = ({ site, event }: PageContext): string =>
  personOf(site.caller(event))?.name ?? t.session.title

function describePerson({ site, event }: PageContext): readonly (readonly [string, Content])[] {
  const person = personOf(site.caller(event))
  if (person === null) return []
  return [
    [t.session.role, person.role === null ? t.session.noRole : t.roles[person.role].title],
    [t.session.scope, describeReach(reachOf(person))],
  ]
}

/** Administrators see all tokens, everybody else their own. */
async function listOwn(context: PageContext): Promise<readonly TokenRecord[]> {
  const { site, event } = context
  const tokens = await site.tokens.list()
  const caller = site.caller(event)
  if (permits(listScopes(caller), 'admin')) return tokens
  return tokens.filter(({ owner }) => owner === personOf(caller)?.id)
}

function renderOwner({ site }: PageContext, owner: string | null): Content {
  const name = owner === null ? null : (site.people?.store.find(owner)?.name ?? null)
  return name === null ? null : html`${fill(t.tokens.owner, { name })}, `
}

const renderChanged = ({ query }: PageContext): Content =>
  query.get('changed') === 'password' ? banner('done', t.password.changed) : null

/** The token is on the page once; the command has its variable. */
const renderFresh = (context: PageContext, token: string): Html =>
  html`${banner('done', fillHtml(t.tokens.created, { token: copyable(token) }))}
  ${card({
    body: html`<p>${fillHtml(t.tokens.use, { variable: html`<code>FLASHER_TOKEN</code>` })}</p>
      ${copyBlock(
        renderCurl({ method: 'GET', url: `${context.contact().baseUrl}/machines` }),
        PAGES.frame.curl.label,
      )}`,
  })}`

function renderTokens(context: PageContext, tokens: readonly TokenRecord[], clock: Clock): Content {
  if (tokens.length === 0) {
    return html`<p class="dim">${t.tokens.empty}</p>`
  }
  return html`<ul class="rows">
    ${tokens.map(
      ({ id, name, scopes, owner, created_at, last_used_at, expires_at }) =>
        html`<li>
          <span class="grow"
            ><strong>${name}</strong> ${scopes.map((scope) => html`${tag(scope)} `)}<br />
            <span class="small dim"
              >${renderOwner(context, owner)}${fillHtml(t.tokens.dates, {
                created: renderTime(created_at, clock),
                used: renderTime(last_used_at, clock, t.tokens.never),
                expires: renderTime(expires_at, clock, t.tokens.never),
              })}</span
            ></span
          >
          ${questionButton({ action: `${PATH}/tokens/${id}/revoke`, label: t.tokens.revoke, tone: 'danger' })}
        </li>`,
    )}
  </ul>`
}

const renderForm = (context: PageContext): Html => {
  const name = context.notice()?.typed['name'] ?? ''
  const own = listScopes(context.site.caller(context.event))
  return html`<form method="post" action="${PATH}/tokens">
      ${textField({ name: 'name', label: t.tokens.name, required: true, maxLength: 64, value: name, hint: t.tokens.nameHint })}
      <fieldset>
        <legend>${t.tokens.scopes}</legend>
        ${SCOPES.filter((scope) => permits(own, scope)).map((scope) => checkField({ name: 'scopes', value: scope, label: html`<strong>${scope}</strong> ${t.tokens.permits[scope]}`, checked: scope === 'read' }))}
      </fieldset>
      ${selectField({ name: 'days', label: t.tokens.lifetime, value: '90', options: Object.entries(LIFETIMES).map(([value, text]) => ({ value, text })) })}
      <button class="primary">${t.tokens.button}</button>
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
  if (!Object.hasOwn(LIFETIMES, days)) return fail(t.tokens.errors.lifetime)
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
      return wrong.includes('name') ? t.tokens.errors.name : t.tokens.errors.scopes
    }
    case 'beyond':
      return t.tokens.errors.beyond
    case 'name-taken':
      return fill(t.tokens.errors.taken, { name: refusal.name })
    case 'too-many':
      return fill(t.tokens.errors.tooMany, { count: refusal.most })
  }
}

async function askRevocation(context: PageContext): Promise<Answer> {
  const id = getRouterParam(context.event, 'id') ?? ''
  const token = (await listOwn(context)).find((each) => each.id === id)
  if (token === undefined) return tokenGone(context)
  return await showRemoval(context, {
    title: fill(t.tokens.revocation.title, { name: token.name }),
    section: PATH,
    trail: html`<a href="${PATH}">${PAGES.frame.titles.account}</a>`,
    question: fillHtml(t.tokens.revocation.question, { name: html`<bdi>${token.name}</bdi>` }),
    body: html`<p>
      ${fillHtml(t.tokens.revocation.consequence, {
        time: renderTime(token.last_used_at, context.clock(), t.tokens.never),
      })}
    </p>`,
    cancel: `${PATH}#tokens`,
    button: t.tokens.revocation.button,
    calls: [{ method: 'DELETE', path: `/tokens/${token.id}`, scope: 'admin' }],
  })
}

const tokenGone = (context: PageContext): Answer =>
  context.goBack(PATH, { error: t.tokens.errors.unknown })

async function revoke(context: PageContext): Promise<Answer> {
  const id = getRouterParam(context.event, 'id') ?? ''
  const isOwn = (await listOwn(context)).some((each) => each.id === id)
  const isGone = isOwn && (await revokeToken(context.site, context.event, id))
  return isGone ? context.goTo(`${PATH}#tokens`) : tokenGone(context)
}
