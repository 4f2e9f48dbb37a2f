/** The settings of section `[oidc]`, the OpenID provider with which people log in. */
import { isIssuer } from '#kit/net/openid/rules/provider-failure.ts'
import * as kinds from './setting-kinds.ts'
import { settingOf } from './setting.ts'

const { line, listOf, path, secretText, textual } = kinds
const setting = settingOf('flasher-web')

/** As the provider writes it, with the slash at its end or without. */
const issuer = textual(
  line.refine((given) => given === '' || isIssuer(given)),
  'an address on https (http on this host only), exactly as the provider writes it',
  'https://login.example.org/realms/lab',
  { keyboard: 'url' },
)

const plainText = (example: string) => textual(line.max(200), 'one line of text', example)

/** Names of claims, and what stands in them. */
const words = (wants: string, example: string) =>
  listOf(line.min(1).max(512), { most: 200, wants, example }, /[\n,]+/)

const values = (example: string) => words('a list of values', example)

const scopes = listOf(
  line.max(600).regex(/^[^;,]+(?:;\s*(?:\*|[\w.-]+(?: [\w.-]+)*)\s*)+$/),
  {
    most: 200,
    wants: 'a list of groups and their labels, separated by ;',
    example: 'team-berlin; site-berlin',
  },
  /[\n,]+/,
)

export const PROVIDER_SETTINGS = {
  issuer: setting({
    title: 'Issuer',
    topic: 'login',
    help: 'The OpenID provider with which people log in, exactly as its discovery document says `issuer`. Leave empty to have none.',
    kind: issuer,
    fallback: '',
  }),
  name: setting({
    title: 'Name of the provider',
    topic: 'login',
    help: 'What the login page calls the provider. Leave empty to show the host of its address.',
    kind: plainText('Example Ltd'),
    fallback: '',
  }),
  client_id: setting({
    title: 'Client ID',
    topic: 'login',
    help: 'The name under which this server is registered at the provider.',
    kind: plainText('flasher'),
    fallback: '',
  }),
  client_secret: setting({
    title: 'Client secret',
    topic: 'login',
    help: 'The secret of this client. Leave empty for a public client, which has none.',
    kind: secretText,
    fallback: '',
  }),
  client_secret_file: setting({
    title: 'File with the client secret',
    topic: 'login',
    help: 'The file whose first line is the client secret, instead of `oidc.client_secret`.',
    kind: path('/etc/flasher/oidc-client-secret'),
    fallback: '',
  }),
  request_scope: setting({
    title: 'Requested scope',
    topic: 'login',
    help: 'What the provider is asked to tell of people, with blanks between; some send groups only where `groups` is among it.',
    kind: plainText('openid profile email groups'),
    fallback: 'openid profile email',
  }),
  name_claim: setting({
    title: 'Claim with the name',
    topic: 'login',
    help: 'What people are called here. A dot leads into an object.',
    kind: plainText('preferred_username'),
    fallback: 'preferred_username',
  }),
  role_claims: setting({
    title: 'Claims with the groups',
    topic: 'login',
    help: 'The claims whose values give roles. A dot leads into an object (`realm_access.roles`); `email` counts where the provider has verified it.',
    kind: words('a list of names of claims', 'groups'),
    fallback: ['groups'],
  }),
  look: setting({
    title: 'Who may look',
    topic: 'login',
    help: 'The groups of the provider whose members are Viewers, role `look`.',
    kind: values('lab-guests'),
    fallback: [],
  }),
  operate: setting({
    title: 'Who may operate',
    topic: 'login',
    help: 'The groups of the provider whose members are Operators, role `operate`.',
    kind: values('lab'),
    fallback: [],
  }),
  administrate: setting({
    title: 'Who may administrate',
    topic: 'login',
    help: 'The groups of the provider whose members are Administrators, role `administrate`.',
    kind: values('lab-admins'),
    fallback: [],
  }),
  scopes: setting({
    title: 'Scopes by group',
    topic: 'login',
    help: 'Which machines people see and change: a value of those claims and labels, separated by `;`, or `*` for all machines. Empty: all people see all machines; else whoever has none of the values sees none. Those who administrate have no scope.',
    kind: scopes,
    fallback: [],
  }),
  contact: setting({
    title: 'Whom to ask for a role',
    topic: 'login',
    help: 'The contact shown to people who have no role; empty: an administrator of this server.',
    kind: plainText('it@example.org'),
    fallback: '',
  }),
}
