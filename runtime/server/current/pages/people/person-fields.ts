/** The fields of a person's role, scope and password, and how they are read. */
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '#kit/web/access/rules/new-password.ts'
import { ROLES, type Role } from '#kit/web/answers/rules/rights.ts'
import { selectField, textField } from '#kit/web/ui/fields.ts'
import { html, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { readScope } from './scope-field.ts'

const t = PAGES.people
const { roles } = PAGES.account

const LABELS = 'labels-in-use'
const MAX_SUGGESTED = 200

/** Below the list, because browsers cut longer options. */
const ROLE_HINT = ROLES.map((role) => `${roles[role].title}: ${roles[role].text}.`).join(' ')

const ROLE_TITLES = ROLES.map((role) => ({ value: role, text: roles[role].title }))

/** For an unreadable role: saved unchanged, it becomes no other. */
const NO_ROLE = { value: '', text: t.noRole }

/** `role` empty: none; `labels`: the text of the scope. */
export const renderRightsFields = (
  { site }: CurrentContext,
  { role, labels }: { readonly role: string; readonly labels: string },
): Html =>
  html`${selectField({ name: 'role', label: t.role, value: role, options: role === '' ? [NO_ROLE, ...ROLE_TITLES] : ROLE_TITLES, hint: ROLE_HINT })}
    ${textField({ name: 'labels', label: t.scope, hint: t.scopeHint, value: labels, placeholder: t.everything, list: LABELS, autocomplete: 'off' })}
    <datalist id="${LABELS}">
      ${[...new Set(site.machines.peekAll().flatMap((machine) => machine.labels))]
        .toSorted()
        .slice(0, MAX_SUGGESTED)
        .map((label) => html`<option value="${label}"></option>`)}
    </datalist>`

export const renderPasswordField = (label: string, hint: string): Html =>
  textField({
    name: 'password',
    label,
    type: 'password',
    autocomplete: 'new-password',
    required: true,
    minLength: MIN_PASSWORD_LENGTH,
    maxLength: MAX_PASSWORD_LENGTH,
    hint,
  })

export const readLabels = (form: URLSearchParams) => readScope(form.get('labels') ?? '')

export const readRole = (form: URLSearchParams): Role | null =>
  ROLES.find((role) => role === form.get('role')) ?? null
