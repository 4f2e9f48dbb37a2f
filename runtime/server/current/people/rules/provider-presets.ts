/** The providers that the form of a login with a provider knows: what it fills in for each, and what is left to do there. */
interface ProviderPreset {
  readonly title: string
  /** Angle brackets stand for what only its administrator knows. */
  readonly issuer: string
  readonly scope?: string
  readonly nameClaim?: string
  readonly roleClaims?: string
  readonly register: string
}

/** By what the address of the page says. As their documentation describes them (docs/people.md). */
export const PRESETS: Readonly<Record<string, ProviderPreset>> = {
  keycloak: {
    title: 'Keycloak',
    issuer: 'https://<host>/realms/<realm>',
    register:
      'Add a mapper Group Membership to it: token claim name groups, full group path off. Roles take names of groups.',
  },
  entra: {
    title: 'Entra ID',
    issuer: 'https://login.microsoftonline.com/<tenant-id>/v2.0',
    roleClaims: 'roles',
    register:
      'Create app roles, and assign groups to them under Enterprise applications. Roles take values of app roles.',
  },
  google: {
    title: 'Google',
    issuer: 'https://accounts.google.com',
    nameClaim: 'email',
    roleClaims: 'hd\nemail',
    register: 'Google sends no groups. Roles take a Workspace domain or mail addresses.',
  },
  okta: {
    title: 'Okta',
    issuer: 'https://<organization>.okta.com',
    scope: 'openid profile email groups',
    register: 'Set a groups claim filter with the name groups. Roles take names of groups.',
  },
  authentik: {
    title: 'authentik',
    issuer: 'https://<host>/application/o/<application>/',
    register: 'Choose a signing key and a strict redirect URI. Roles take names of groups.',
  },
  gitlab: {
    title: 'GitLab',
    issuer: 'https://<host>',
    register:
      'Give it the scopes openid, profile and email. Roles take full paths of groups, such as lab/admins.',
  },
}

/** Texts by setting. Issuer and name that are set stay. */
export const fillPreset = (
  { issuer, title, scope, nameClaim, roleClaims }: ProviderPreset,
  isSet: boolean,
): Readonly<Record<string, string>> => ({
  ...(isSet ? {} : { 'oidc.issuer': issuer, 'oidc.name': title }),
  'oidc.request_scope': scope ?? 'openid profile email',
  'oidc.name_claim': nameClaim ?? 'preferred_username',
  'oidc.role_claims': roleClaims ?? 'groups',
})
