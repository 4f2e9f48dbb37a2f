/** What the pages of one receiver share: its address and its form, what that makes, and why it was refused. */
import { getRouterParam } from 'h3'
import type { EditRefusal, GivenReceiver } from '#fleet/notify/receivers.ts'
import {
  MAIL_SECURITIES,
  MAX_RECEIVERS,
  MAX_RULES,
  NameSchema,
  type Receiver,
  SECRET_SHAPES,
  TARGET_KINDS,
  type TargetKind,
  TargetSchema,
} from '#fleet/notify/rules/channel.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import {
  describeWrong,
  renderFormFields,
  type FormErrors,
  type FormField,
} from '#server/pages/form-fields.ts'
import type { CurrentContext } from '../view/page-context.ts'

export const NOTIFICATIONS_PATH = '/ui/notifications'
export const NOTIFICATIONS_TITLE = 'Notifications'

export const pathOfReceiver = (id: string): string => `${NOTIFICATIONS_PATH}/${id}`

/** Throws a 404 where there is none. */
export function findReceiver({ services, event }: CurrentContext): Receiver {
  const receiver = services.notify.receivers.find(getRouterParam(event, 'id') ?? '')
  if (receiver === null) throw refuseRequest(404, REFUSALS.unknown)
  return receiver
}

/** The way to a page of a receiver; null: to its own. */
export const trailTo = (receiver: Receiver | null): Html =>
  html`<a href="${NOTIFICATIONS_PATH}">${NOTIFICATIONS_TITLE}</a>${
      receiver === null
        ? null
        : html` / <a href="${pathOfReceiver(receiver.id)}">${receiver.name}</a>`
    }`

/** What is said of the receiver behind its name. */
const DONE = {
  added: (name: string) => `${name} was added. Send it a test.`,
  saved: (name: string) => `${name} was saved.`,
  tested: (name: string) => `The test to ${name} was delivered.`,
  paused: (name: string) => `${name} is paused.`,
  resumed: (name: string) => `${name} is notified again.`,
  again: (name: string) => `The message is sent to ${name} again.`,
  removed: (name: string) => `${name} was removed.`,
} as const

export const goDone = (
  context: CurrentContext,
  { id, name }: Receiver,
  done: keyof typeof DONE,
): Answer =>
  context.goTo(
    done === 'removed'
      ? address(NOTIFICATIONS_PATH, { done, name })
      : address(pathOfReceiver(id), { done }),
  )

/** `name`: what the receiver is called; null: it is gone, and the address says what it was. */
export function renderDone({ query }: CurrentContext, name: string | null): Content {
  const describe = Object.entries(DONE).find(([key]) => key === query.get('done'))?.[1]
  const named = name ?? query.get('name')
  return describe === undefined || named === null ? null : banner('done', describe(named))
}

export const WRONG_FIELDS = 'Correct the fields that are marked.'

export const REFUSALS: Readonly<Record<EditRefusal, string>> = {
  'name-taken': 'That name is in use.',
  'too-many': `There are ${MAX_RECEIVERS} receivers already.`,
  'too-many-rules': `There are ${MAX_RULES} rules already.`,
  'secret-missing': 'Enter it: nothing can be sent without it.',
  'secret-shape': WRONG_FIELDS,
  unknown: 'That receiver was removed already.',
}

const SECURITIES: Readonly<Record<(typeof MAIL_SECURITIES)[number], string>> = {
  starttls: 'STARTTLS, required (port 587 or 25)',
  tls: 'TLS (port 465)',
  none: 'None: only without a user (port 25)',
}

const LINE = { required: true, maxLength: 2000 } as const

const FIELDS = {
  name: {
    ...LINE,
    label: 'Name',
    hint: 'Such as on-call.',
    wrong: 'Enter a name of at most 64 characters.',
  },
  url: {
    ...LINE,
    type: 'url',
    label: 'Address',
    hint: 'Where requests go. Redirects are not followed.',
    wrong: 'Enter an address, http:// or https://, without a user and a password in it.',
  },
  host: { ...LINE, label: 'SMTP server', wrong: 'Enter a host name or an IP address.' },
  port: { ...LINE, short: true, label: 'Port', wrong: 'Enter a port from 1 to 65535.' },
  security: {
    label: 'Encryption',
    options: MAIL_SECURITIES.map((value) => ({ value, text: SECURITIES[value] })),
  },
  user: { maxLength: 2000, label: 'User', hint: 'Leave empty if the server asks for none.' },
  from: { ...LINE, label: 'From', wrong: 'Enter one mail address, without a name.' },
  to: {
    ...LINE,
    label: 'To',
    hint: 'Addresses, separated by commas.',
    wrong: 'Enter one to 20 mail addresses, separated by commas.',
  },
} as const satisfies Readonly<Record<string, FormField>>
type FieldName = keyof typeof FIELDS

interface ChannelForm {
  readonly title: string
  readonly text: string
  /** In the order of the form; the secret comes last. */
  readonly fields: readonly FieldName[]
  readonly secret: FormField
}

export const CHANNELS: Readonly<Record<TargetKind, ChannelForm>> = {
  webhook: {
    title: 'Webhook',
    text: 'Signed JSON to your own program (Standard Webhooks).',
    fields: ['name', 'url'],
    secret: {
      label: 'Signing secret',
      hint: 'Make one with openssl rand -base64 32. Your program needs it too.',
      wrong: 'Enter base64 of at least 24 bytes, as openssl rand -base64 32 prints it.',
    },
  },
  mail: {
    title: 'Mail',
    text: 'Through an SMTP server, as text and HTML.',
    fields: ['name', 'host', 'port', 'security', 'user', 'from', 'to'],
    secret: { label: 'Password', hint: 'The password of the user.' },
  },
  slack: {
    title: 'Slack',
    text: 'To a channel, by incoming webhook. Also for Mattermost and Discord.',
    fields: ['name'],
    secret: {
      label: 'Address of the incoming webhook',
      hint: 'https://hooks.slack.com/services/… It is a secret and not shown again.',
      wrong: 'Enter the whole address, https://…',
    },
  },
}

export const readKind = (text: string): TargetKind | null =>
  TARGET_KINDS.find((kind) => kind === text) ?? null

/** `receiver` null: it is added. A secret that is kept stays where none is entered. */
export function renderFields(
  { services, notice }: CurrentContext,
  kind: TargetKind,
  receiver: Receiver | null,
): Html {
  const { fields, secret } = CHANNELS[kind]
  const isSecretKept = receiver !== null && services.notify.secrets.find(receiver.id) !== null
  const stored = receiver === null ? { port: '587', security: 'starttls' } : valuesOf(receiver)
  const field: FormField = {
    ...secret,
    hint: isSecretKept ? KEPT[kind === 'mail' ? 'mail' : 'other'] : secret.hint,
    type: 'password',
    autocomplete: 'new-password',
    required: SECRET_SHAPES[kind] !== null && !isSecretKept,
    maxLength: 2000,
  }
  const shown = { ...Object.fromEntries(fields.map((name) => [name, FIELDS[name]])), secret: field }
  return renderFormFields(shown, stored, notice())
}

const KEPT = {
  mail: 'A password is saved. Leave empty to keep it. Enter it again if you change server, port, encryption or user.',
  other: 'A secret is saved. Leave empty to keep it.',
} as const

function valuesOf({ name, target }: Receiver): Readonly<Partial<Record<FieldName, string>>> {
  if (target.kind !== 'mail') return { name, ...target }
  const { host, port, security, user, from, to } = target
  return { name, host, port: String(port), security, user, from, to: to.join(', ') }
}

/** A user without encryption is refused: the password could be read on its way. */
export function readReceiver(
  kind: TargetKind,
  form: URLSearchParams,
): Result<GivenReceiver, FormErrors> {
  const text = (name: string) => form.get(name)?.trim() ?? ''
  const name = NameSchema.safeParse(text('name'))
  const target = TargetSchema.safeParse({ kind, ...readTarget(text) })
  const isOpen = kind === 'mail' && text('security') === 'none' && text('user') !== ''
  const errors = {
    ...(name.success ? {} : { name: FIELDS.name.wrong }),
    ...describeWrong(target.error, FIELDS, WRONG_FIELDS),
    ...(isOpen ? { security: USER_IN_CLEAR } : {}),
  }
  if (!name.success || !target.success || isOpen) return refuse(errors)
  return accept({ name: name.data, target: target.data, secret: text('secret') })
}

const USER_IN_CLEAR =
  'Without encryption the password would be readable on its way: select STARTTLS or TLS.'

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

/** Why a change was refused, and the field that it is about, where there is one. */
export function describeRefusal(
  kind: TargetKind,
  refusal: EditRefusal,
): { readonly error: string; readonly errors: FormErrors } {
  const wrong = refusal === 'secret-shape' ? CHANNELS[kind].secret.wrong : undefined
  const error = wrong ?? REFUSALS[refusal]
  if (refusal === 'name-taken') return { error, errors: { name: error } }
  return { error, errors: refusal.startsWith('secret-') ? { secret: error } : {} }
}

/** What comes back into a refused form: everything but the secret. */
export const typedOf = (form: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries([...form].filter(([name]) => name !== 'secret'))
