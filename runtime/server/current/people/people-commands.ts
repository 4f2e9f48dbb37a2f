/** `flasher-web people`: lists, adds, changes and removes the people who log in with a name. */
import { createAccounts, type Accounts, type PersonRefusal } from '#fleet/access/accounts.ts'
import { generatePassword } from '#fleet/access/passwords.ts'
import { MAX_SCOPE_CHARACTERS, MAX_PEOPLE, type Person } from '#fleet/access/rules/person.ts'
import type { Requester } from '#fleet/state/journal.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Result } from '#kit/foundation/result.ts'
import { ROLES, type Role } from '#kit/web/answers/rules/rights.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { askPassword } from './password-commands.ts'
import { visitState, type Visit } from '#server/current/commands/visit.ts'

/** Anybody who may write the state of the server. */
const BY: Requester = { actor: 'operator', ip: null }

export const listPeople: RunCommand<ProcessEnvironment> = async (environment, given) => {
  await using visit = await visitState(environment, given)
  const people = visit.state.peopleStore
    .list()
    .map(({ name, role, labels, created_at, ...more }) => ({
      name,
      role,
      labels,
      created_at,
      ...(more.provider !== null && {
        provider: more.provider.issuer,
        seen_at: more.seen_at,
        blocked_at: more.blocked_at,
      }),
    }))
  const { stdout } = environment
  if (given.switches.has('json')) stdout.write(`${JSON.stringify(people, null, 2)}\n`)
  else
    for (const { name, role, labels } of people) {
      stdout.write(`${name}\t${role ?? 'no role'}\t${labels?.join(', ') ?? 'all machines'}\n`)
    }
  return SUCCESS
}

/** Rejects with a Fault `misuse` for a bad name or password, `conflict` for a name in use. */
export const addPerson: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const [name = ''] = given.positionals
  const role = readRole(given)
  const password = await choosePassword(environment, given)
  await using visit = await visitState(environment, given)
  const accounts = openAccounts(visit)
  const person = settle(
    await accounts.add({ name, role, password, labels: readLabels(given) }, BY),
    name,
  )
  print(environment, given, password)
  visit.success(`${person.name} can log in (${role})`)
  return SUCCESS
}

/** Rejects with a Fault `not-found`. An absent scope stays. */
export const setRole: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const role = readRole(given)
  const labels = readLabels(given)
  const isForAll = given.switches.has('all-machines')
  if (isForAll && labels !== null)
    throw new Fault('misuse', '--label and --all-machines exclude each other')
  await using visit = await visitState(environment, given)
  const { id, name } = findPerson(visit, given)
  settle(
    await openAccounts(visit).setRights(
      id,
      { role, ...((isForAll || labels !== null) && { labels }) },
      BY,
    ),
    name,
  )
  visit.success(`${name} has the role ${role}; all sessions of ${name} have ended`)
  return SUCCESS
}

/** Rejects as `addPerson` and `setRole` do. */
export const setPassword: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const password = await choosePassword(environment, given)
  await using visit = await visitState(environment, given)
  const { id, name } = findPerson(visit, given)
  settle(await openAccounts(visit).setPassword(id, password, BY), name)
  print(environment, given, password)
  visit.success(`${name} has another password; all sessions of ${name} have ended`)
  return SUCCESS
}

/** Rejects with a Fault `not-found`. */
export const removePerson: RunCommand<ProcessEnvironment> = async (environment, given) => {
  await using visit = await visitState(environment, given)
  const { id, name } = findPerson(visit, given)
  settle(await openAccounts(visit).remove(id, BY), name)
  visit.success(`${name} was removed; all sessions and tokens of ${name} have ended`)
  return SUCCESS
}

/** A running server reads the rows at the next request. */
const openAccounts = ({ state: { peopleStore, tokens, journal } }: Visit): Accounts =>
  createAccounts({ people: peopleStore, tokens, record: journal.record })

function readRole({ positionals: [, text = ''] }: Arguments): Role {
  const role = ROLES.find((each) => each === text)
  if (role !== undefined) return role
  throw new Fault('misuse', `${text} is not a role`, { hint: `Use one of ${ROLES.join(', ')}.` })
}

function readLabels({ lists }: Arguments): readonly string[] | null {
  const labels = lists['label'] ?? []
  return labels.length === 0 ? null : labels
}

function findPerson({ state }: Visit, { positionals: [name = ''] }: Arguments): Person {
  const person = state.peopleStore.findByName(name.trim().toLowerCase())
  if (person !== null) return person
  throw new Fault('not-found', `there is no person called ${name}`, {
    hint: 'List all people with flasher-web people list.',
  })
}

const isGenerated = ({ switches }: Arguments): boolean => switches.has('generate')

const choosePassword = async (environment: ProcessEnvironment, given: Arguments) =>
  isGenerated(given) ? generatePassword() : await askPassword(environment)

function print({ stdout }: ProcessEnvironment, given: Arguments, password: string): void {
  if (isGenerated(given)) stdout.write(`Password: ${password}\n`)
}

const REFUSALS: Readonly<Record<PersonRefusal, string>> = {
  'name-shape':
    'is not a valid name. Use lowercase letters, digits and . _ - + @, at most 64 of them',
  'name-reserved': 'is reserved. Use another name',
  'name-taken': 'already exists',
  'too-many': `cannot be added. There are already ${MAX_PEOPLE} people`,
  'too-short': 'needs a longer password',
  'too-long': 'needs a shorter password',
  'scope-label': 'needs a scope of labels as machines have them: letters, digits, spaces and . _ -',
  'scope-long': `needs a scope whose labels have at most ${MAX_SCOPE_CHARACTERS} characters together, with three more for each label`,
  'control-characters': 'needs a password without control characters',
  differs: 'was given two different passwords',
  unknown: 'was removed in the meantime',
  'of-provider': 'logs in with the provider, which sets the password and role',
  'has-password': 'has a password here. Remove this person to end the access',
}

function settle(changed: Result<Person, PersonRefusal>, name: string): Person {
  if (changed.ok) return changed.value
  const isConflict = changed.refusal === 'name-taken' || changed.refusal === 'too-many'
  const code = isConflict ? 'conflict' : 'misuse'
  throw new Fault(code, `${name === '' ? 'the empty name' : name} ${REFUSALS[changed.refusal]}`)
}
