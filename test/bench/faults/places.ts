/** Finds the places in a parsed file where a fault of one of seven kinds can be made, by syntax alone. */
import * as ast from 'typescript/unstable/ast'
import type { Node, SourceFile } from 'typescript/unstable/ast'

export const KINDS = [
  'condition turned',
  'limit off by one',
  'await or sync left out',
  'check skipped',
  'writes exchanged',
  'error swallowed',
  'wrong field',
] as const
export type Kind = (typeof KINDS)[number]

/** The text from `start` to `end` is replaced. */
export interface Place {
  readonly kind: Kind
  readonly start: number
  readonly end: number
  readonly text: string
}

/** What stands from the start of `node` to the end of `until`, or of itself, becomes `text`. */
interface Change {
  readonly node: Node
  readonly until?: Node
  readonly text: string
}
interface Context {
  readonly textOf: (node: Node) => string
  readonly textBetween: (one: Node, other: Node) => string
  /** The names of the fields that the file reads, by the text of their owner. */
  readonly fields: ReadonlyMap<string, readonly string[]>
}

const TURNED: Readonly<Record<string, string>> = { '===': '!==', '!==': '===' }
const SHIFTED: Readonly<Record<string, string>> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }
const SYNCS = /^f?(?:data)?sync(?:fs|Sync)?$/i

const FINDERS: Readonly<Record<Kind, (node: Node, context: Context) => readonly Change[]>> = {
  'condition turned': (node, { textOf }) => {
    const condition = conditionOf(node)
    if (condition !== null) return [{ node: condition, text: `!(${textOf(condition)})` }]
    // The whole condition of an `if` is turned already.
    return conditionOf(node.parent) === node ? [] : replaceOperator(node, TURNED)
  },
  'limit off by one': (node, { textOf }) => {
    if (!ast.isVariableDeclaration(node)) return replaceOperator(node, SHIFTED)
    const { name, initializer } = node
    if (initializer === undefined || !textOf(name).startsWith('MAX_')) return []
    const text = textOf(initializer)
    return /^[\d_ *+()-]+$/.test(text) ? [{ node: initializer, text: `${text} + 1` }] : []
  },
  'await or sync left out': (node, { textOf }) => {
    if (ast.isExpressionStatement(node) && isSync(node.expression)) return [{ node, text: '{}' }]
    const isAwait = ast.isAwaitExpression(node) && !isSync(node)
    return isAwait ? [{ node, text: textOf(node.expression) }] : []
  },
  'check skipped': (node, { textOf }) => {
    if (ast.isIfStatement(node)) {
      return node.elseStatement === undefined && leaves(node.thenStatement)
        ? [{ node, text: '{}' }]
        : []
    }
    const isBoth = ast.isBinaryExpression(node) && textOf(node.operatorToken) === '&&'
    return isBoth ? [{ node, text: textOf(node.left) }] : []
  },
  'writes exchanged': (node, { textOf, textBetween }) =>
    !ast.isBlock(node)
      ? []
      : node.statements.flatMap((one, at) => {
          const other = node.statements[at + 1]
          if (other === undefined || !isWrite(one) || !isWrite(other)) return []
          const text = `${textOf(other)}${textBetween(one, other)}${textOf(one)}`
          return [{ node: one, until: other, text }]
        }),
  'error swallowed': (node, { textOf }) => {
    if (ast.isThrowStatement(node)) return isGuarded(node) ? [] : [{ node, text: '{}' }]
    if (ast.isCatchClause(node)) return [{ node: node.block, text: '{}' }]
    if (!ast.isExpressionStatement(node) || !ast.isAwaitExpression(node.expression)) return []
    const awaited = textOf(node.expression.expression)
    return [{ node: node.expression, text: `await (${awaited}).catch(() => {})` }]
  },
  'wrong field': (node, context) =>
    ast.isObjectLiteralExpression(node)
      ? exchangeFields(node.properties, context)
      : readOtherField(node, context),
}

/** The places of a file, kind by kind. */
export function findPlaces(file: SourceFile): readonly Place[] {
  const nodes: Node[] = []
  const fields = new Map<string, string[]>()
  const textOf = (node: Node) => file.text.slice(node.getStart(file), node.end)
  const textBetween = (one: Node, other: Node) => file.text.slice(one.end, other.getStart(file))

  function visit(node: Node) {
    nodes.push(node)
    if (isRead(node))
      fields.getOrInsertComputed(textOf(node.expression), () => []).push(textOf(node.name))
    node.forEachChild(visit)
  }
  visit(file)
  const context = { textOf, textBetween, fields }
  return KINDS.flatMap((kind) =>
    nodes.flatMap((from) =>
      FINDERS[kind](from, context)
        .map(({ node, until = node, text }) => ({
          kind,
          start: node.getStart(file),
          end: until.end,
          text,
        }))
        .filter(({ start, end, text }) => text !== file.text.slice(start, end)),
    ),
  )
}

function conditionOf(node: Node | undefined): Node | null {
  if (node === undefined) return null
  if (ast.isIfStatement(node) || ast.isWhileStatement(node)) return node.expression
  return ast.isConditionalExpression(node) ? node.condition : null
}

function replaceOperator(node: Node, others: Readonly<Record<string, string>>): readonly Change[] {
  if (!ast.isBinaryExpression(node)) return []
  const { operatorToken } = node
  const text = others[ast.tokenToString(operatorToken.kind) ?? '']
  return text === undefined ? [] : [{ node: operatorToken, text }]
}

/** Two fields beside each other each get the value of the other. */
function exchangeFields(fields: readonly Node[], { textOf, textBetween }: Context) {
  const split = (field: Node | undefined): readonly [string, string] | null => {
    if (field === undefined) return null
    if (ast.isShorthandPropertyAssignment(field)) return [textOf(field), textOf(field)]
    return ast.isPropertyAssignment(field) ? [textOf(field.name), textOf(field.initializer)] : null
  }
  return fields.flatMap((node, at): readonly Change[] => {
    const until = fields[at + 1]
    const [one, other] = [split(node), split(until)]
    if (until === undefined || one === null || other === null || one[1] === other[1]) return []
    const text = `${one[0]}: ${other[1]}${textBetween(node, until)}${other[0]}: ${one[1]}`
    return [{ node, until, text }]
  })
}

/** The next field of the same owner by the alphabet is read, so that all of them have their turn. */
function readOtherField(node: Node, { textOf, fields }: Context): readonly Change[] {
  if (!isRead(node)) return []
  const names = [...new Set(fields.get(textOf(node.expression)))].toSorted()
  const other = names[(names.indexOf(textOf(node.name)) + 1) % names.length]
  return other === undefined ? [] : [{ node: node.name, text: other }]
}

const isRead = (node: Node): node is ast.PropertyAccessExpression =>
  ast.isPropertyAccessExpression(node) &&
  !(ast.isCallExpression(node.parent) && node.parent.expression === node)

/** Whether it is called, or set, for what it does. */
function isWrite(node: Node): boolean {
  if (!ast.isExpressionStatement(node)) return false
  const { expression } = node
  const done = ast.isAwaitExpression(expression) ? expression.expression : expression
  if (ast.isBinaryExpression(done)) return done.operatorToken.kind === ast.SyntaxKind.EqualsToken
  return ast.isCallExpression(done)
}

function isSync(node: Node): boolean {
  if (ast.isAwaitExpression(node)) return isSync(node.expression)
  if (!ast.isCallExpression(node)) return false
  const { expression } = node
  const name = ast.isPropertyAccessExpression(expression) ? expression.name : expression
  return ast.isIdentifier(name) && SYNCS.test(name.text)
}

/** Whether nothing after it runs. */
function leaves(node: Node | undefined): boolean {
  if (node === undefined) return false
  if (ast.isBlock(node)) return leaves(node.statements.at(-1))
  const isEnd = ast.isReturnStatement(node) || ast.isThrowStatement(node)
  return isEnd || ast.isContinueStatement(node) || ast.isBreakStatement(node)
}

/** Whether it is thrown under a condition alone, which is a check that can be skipped. */
const isGuarded = ({ parent }: Node): boolean =>
  ast.isIfStatement(parent) || (ast.isBlock(parent) && ast.isIfStatement(parent.parent))
