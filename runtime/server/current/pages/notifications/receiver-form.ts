/** What the pages of one receiver share: its address and its form, what that makes, and why it was refused. */
import { getRouterParam } from 'h3'
import type { z } from 'zod'
import type { EditRefusal, GivenReceiver } from '#fleet/notify/receivers.ts'
import {
  MAX_RECEIVERS,
  MAX_RULES,
  type Receiver,
  NameSchema,
} from '#fleet/notify/rules/receiver.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { selectField, textField } from '#kit/web/ui/fields.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { CurrentContext } from '../view/page-context.ts'
import {
  MAIL_SECURITIES,
  SECRET_SHAPES,
  TARGET_KINDS,
  TargetSchema,
  type TargetKind,
} from '#fleet/notify/rules/channel.ts'

export const NOTIFICATIONS_PATH = '/ui/notifications'

export const pathOfReceiver = (id: string): string => `${NOTIFICATIONS_PATH}/${id}`

const RECEIVER_ERRORS = {
  'name-taken': 'That name is in use.',
  'too-many': 'There are {count} receivers already.',
  'too-many-rules': 'There are {count} rules already.',
  unknown: 'That receiver was removed already.',
  'secret-missing': 'Enter it: without it nothing can be sent.',
  fields: 'Correct the fields that are marked.',
  user: 'Without encryption the password would be readable on its way: select STARTTLS or TLS.',
  events: 'Select at least one kind of event.',
  search: 'This search is not understood: {term}',
  person: 'Enter a name of at most 64 characters.',
  test: 'The test to {name} was not delivered: {failure}',
  gone: 'That message is not kept any more.',
} as const

/** Throws a 404 where there is none. */
export function findReceiver({ services, event }: CurrentContext): Receiver {
  const receiver = services.notify.receivers.find(getRouterParam(event, 'id') ?? '')
  if (receiver === null) throw refuseRequest(404, RECEIVER_ERRORS.unknown)
  return receiver
}

/** The way to a page of a receiver; null: to its own. */
export const trailTo = (receiver: Receiver | null): Html =>
  html`<a href="${NOTIFICATIONS_PATH}">Notifications</a>${
      receiver === null
        ? null
        : html` / <a href="${pathOfReceiver(receiver.id)}">${receiver.name}</a>`
    }`

const RECEIVER_DONE = {
  added: '{name} was added. Send it a test.',
  saved: '{name} was saved.',
  tested: 'The test to {name} was delivered.',
  paused: '{name} is paused.',
  resumed: '{name} is notified again, from now on.',
  again: 'The message is sent to {name} again.',
  removed: '{name} was removed.',
} as const

export const goDone = (
  context: CurrentContext,
  { id, name }: Receiver,
  done: keyof typeof RECEIVER_DONE,
): Answer =>
  context.goTo(
    done === 'removed'
      ? address(NOTIFICATIONS_PATH, { done, name })
      : address(pathOfReceiver(id), { done }),
  )

/** `name`: what the receiver is called; null: it is gone, and the address says what it was. */
export function renderDone({ query }: CurrentContext, name: string | null): Content {
  const text = Object.entries(RECEIVER_DONE).find(([key]) => key === query.get('done'))?.[1]
  const named = name ?? query.get('name')
  return text === undefined || named === null ? null : banner('done', fill(text, { name: named }))
}

export function describeRefusal(refusal: EditRefusal): string {
  switch (refusal) {
    case 'secret-shape':
      return RECEIVER_ERRORS.fields
    case 'too-many':
      return fill(RECEIVER_ERRORS[refusal], { count: MAX_RECEIVERS })
    case 'too-many-rules':
      return fill(RECEIVER_ERRORS[refusal], { count: MAX_RULES })
    case 'name-taken':
    case 'secret-missing':
    case 'unknown':
      return RECEIVER_ERRORS[refusal]
  }
}

interface FieldTexts {
  readonly label: string
  readonly hint?: string
  /** What is said where it is refused. */
  readonly wrong?: string
}

const FIELDS = {
  name: {
    label: 'Name',
    hint: 'What you call it, for example on-call.',
    wrong: 'Enter a name of at most 64 characters.',
  },
  url: {
    label: 'Address',
    hint: 'Where requests go. Redirects are not followed.',
    wrong: 'Enter an address, http:// or https://, without a user and a password in it.',
  },
  host: { label: 'SMTP server', wrong: 'Enter a host name or an IP address.' },
  port: { label: 'Port', wrong: 'Enter a port from 1 to 65535.' },
  security: { label: 'Encryption' },
  user: { label: 'User', hint: 'Leave empty if the server asks for none.' },
  from: { label: 'From', wrong: 'Enter one mail address, without a name.' },
  to: {
    label: 'To',
    hint: 'Addresses, separated by commas.',
    wrong: 'Enter one to 20 mail addresses, separated by commas.',
  },
} as const satisfies Readonly<Record<string, FieldTexts>>
type FieldName = keyof typeof FIELDS

const SECURITIES: Readonly<Record<(typeof MAIL_SECURITIES)[number], string>> = {
  starttls: 'STARTTLS, required (port 587 or 25)',
  tls: 'TLS (port 465)',
  none: 'None: only without a user (port 25)',
}

interface ChannelForm {
  readonly title: string
  readonly text: string
  /** In the order of the form; the secret comes last. */
  readonly fields: readonly FieldName[]
  readonly secret: FieldTexts
}

/** The form of each channel. */
export const CHANNELS: Readonly<Record<TargetKind, ChannelForm>> = {
  webhook: {
    title: 'Webhook',
    text: 'JSON to a program of yours, signed (Standard Webhooks).',
    fields: ['name', 'url'],
    secret: {
      label: 'Signing secret',
      hint: 'Make one with openssl rand -base64 32, and give the same to the receiver.',
      wrong: 'Enter base64 of at least 24 bytes, as openssl rand -base64 32 prints it.',
    },
  },
  mail: {
    title: 'Mail',
    text: 'Through an SMTP server, as text and HTML.',
    fields: ['name', 'host', 'port', 'security', 'user', 'from', 'to'],
    secret: { label: 'Password', hint: 'Of that user.' },
  },
  slack: {
    title: 'Slack',
    text: 'To a channel, through an incoming webhook. Mattermost and Discord take the same form.',
    fields: ['name'],
    secret: {
      label: 'Address of the incoming webhook',
      hint: 'https://hooks.slack.com/services/… It is a secret, and not shown again.',
      wrong: 'Enter the whole address, https://…',
    },
  },
}

export const readKind = (text: string): TargetKind | null =>
  TARGET_KINDS.find((kind) => kind === text) ?? null

interface ReceiverForm {
  readonly kind: TargetKind
  /** Null: it is added. */
  readonly receiver: Receiver | null
  /** Whether a secret is kept, which stays where none is entered. */
  readonly isSecretKept: boolean
  readonly notice: Notice | null
}

/** What was typed comes back where it was refused, but for the secret. */
export function renderFields({ kind, receiver, isSecretKept, notice }: ReceiverForm): Html {
  const stored = receiver === null ? DEFAULTS : valuesOf(receiver)
  const valueOf = (name: FieldName) => notice?.typed[name] ?? stored[name] ?? ''
  const errorOf = (name: string) => notice?.errors[name] ?? null
  const { fields, secret } = CHANNELS[kind]
  return html`${fields.map((name) => renderField(name, valueOf(name), errorOf(name)))}
  ${textField({
    name: 'secret',
    label: secret.label,
    hint: isSecretKept
      ? 'One is kept. Leave empty to keep it; another server or user needs it again.'
      : secret.hint,
    type: 'password',
    autocomplete: 'new-password',
    required: SECRET_SHAPES[kind] !== null && !isSecretKept,
    maxLength: 2000,
    error: errorOf('secret'),
  })}`
}

const DEFAULTS: Readonly<Partial<Record<FieldName, string>>> = { port: '587', security: 'starttls' }

function renderField(name: FieldName, value: string, error: string | null): Html {
  const { label, hint }: FieldTexts = FIELDS[name]
  if (name === 'security') {
    const options = MAIL_SECURITIES.map((one) => ({ value: one, text: SECURITIES[one] }))
    return selectField({ name, label, hint, value, options, error })
  }
  return textField({
    name,
    label,
    hint,
    value,
    error,
    required: name !== 'user',
    maxLength: 2000,
    short: name === 'port',
    type: name === 'url' ? 'url' : 'text',
  })
}

function valuesOf({ name, target }: Receiver): Readonly<Partial<Record<FieldName, string>>> {
  if (target.kind !== 'mail') return { name, ...target }
  const { host, port, security, user, from, to } = target
  return { name, host, port: String(port), security, user, from, to: to.join(', ') }
}

export type FieldErrors = Readonly<Record<string, string>>

/** A user without encryption is refused: the password could be read on its way. */
export function readReceiver(
  kind: TargetKind,
  form: URLSearchParams,
): Result<GivenReceiver, FieldErrors> {
  const text = (name: string) => form.get(name)?.trim() ?? ''
  const name = NameSchema.safeParse(text('name'))
  const target = TargetSchema.safeParse({ kind, ...readTarget(text) })
  const isOpen = kind === 'mail' && text('security') === 'none' && text('user') !== ''
  const errors = {
    ...(name.success ? {} : { name: FIELDS.name.wrong }),
    ...(target.success ? {} : describeIssues(target.error)),
    ...(isOpen ? { security: RECEIVER_ERRORS.user } : {}),
  }
  if (!name.success || !target.success || isOpen) return refuse(errors)
  return accept({ name: name.data, target: target.data, secret: text('secret') })
}

/** Each kind takes what it knows of. */
const readTarget = (text: (name: string) => string) => ({
  url: text('url'),
  host: text('host'),
  port: /^\d+$/.test(text('port')) ? Number(text('port')) : null,
  security: text('security'),
  user: text('user'),
  from: text('from'),
  to: text('to')
    .split(/[\s,;]+/)
    .filter((one) => one !== ''),
})

function describeIssues({ issues }: z.ZodError): FieldErrors {
  const texts: Readonly<Record<string, FieldTexts>> = FIELDS
  const names = new Set(issues.map(({ path }) => String(path[0])))
  return Object.fromEntries(
    [...names].map((name) => [name, texts[name]?.wrong ?? RECEIVER_ERRORS.fields]),
  )
}

/** Why a change was refused, at its field where it has one. */
export function describeEditRefusal(kind: TargetKind, refusal: EditRefusal): FieldErrors {
  switch (refusal) {
    case 'name-taken':
      return { name: RECEIVER_ERRORS[refusal] }
    case 'secret-missing':
      return { secret: RECEIVER_ERRORS[refusal] }
    case 'secret-shape':
      return { secret: CHANNELS[kind].secret.wrong ?? RECEIVER_ERRORS.fields }
    case 'too-many':
    case 'too-many-rules':
    case 'unknown':
      return {}
  }
}

/** What comes back into a refused form: everything but the secret. */
export const typedOf = (form: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries([...form].filter(([name]) => name !== 'secret'))
