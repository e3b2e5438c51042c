// Agent card: what an agent says about itself: its name, its address, and a skill for each definition that it offers.

import { A2A_PROTOCOL_VERSION, type AgentCard, type Message } from "@a2a-js/sdk";
import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import type { Definition } from "../kernel/index.ts";

/** A definition as a skill of the agent. */
export interface A2ASkill {
  /** A workflow, graph or flow, or its name. */
  readonly definition: Definition | string;
  /** What it does, for the agents that choose it. */
  readonly description: string;
  /** For people. Default: the name of the definition. */
  readonly name?: string;
  /** Keywords. Default: none. */
  readonly tags?: readonly string[];
  /** Example messages. Default: none. */
  readonly examples?: readonly string[];
  /** The input of a run for the message that starts it. Default: the value of its data part, or its text. */
  readonly input?: (message: Message) => unknown;
  /** A stream of the run whose values followers get as they come, as artifacts. Default: none. */
  readonly stream?: string;
  /** The promises that clients may answer. Default: all that the role of their token allows. */
  readonly promises?: readonly string[];
}

/** Options of `a2a`. */
export interface A2AOptions {
  /** The name of the agent. */
  readonly name: string;
  /** What the agent is for. */
  readonly description: string;
  readonly skills: readonly A2ASkill[];
  /** The version of the agent. Default: `1.0.0`. */
  readonly version?: string;
  /** Where the agent takes messages. Default: `/a2a`. */
  readonly path?: `/${string}`;
  /** The organization behind the agent. */
  readonly provider?: { readonly organization: string; readonly url: string };
  /** A page about the agent. */
  readonly documentationUrl?: string;
}

/** A skill whose options were checked. */
export interface KnownSkill extends A2ASkill {
  readonly id: string;
}

const OPTIONS = ["description", "documentationUrl", "name", "path", "provider", "skills", "version"];
const SKILL_OPTIONS = ["definition", "description", "examples", "input", "name", "promises", "stream", "tags"];

/** Refuses options before a server is made with them. */
export function checkSkills(options: A2AOptions): readonly KnownSkill[] {
  checkOptionNames(options, OPTIONS, "a2a");
  for (const name of ["name", "description"] as const)
    if (typeof options[name] !== "string" || options[name] === "")
      throw new RepriseError("BAD_OPTIONS", `a2a: ${name}: expected a text.`);
  if (!Array.isArray(options.skills) || options.skills.length === 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      "a2a: skills: expected at least one, such as { definition: checkout, description: … }.",
    );
  const skills = options.skills.map((skill: A2ASkill, at) => {
    checkOptionNames(skill, SKILL_OPTIONS, `a2a: skills[${at}]`);
    const { definition } = skill;
    const id = checkName(
      typeof definition === "string" ? definition : definition?.name,
      `a2a: skills[${at}].definition`,
    );
    if (typeof skill.description !== "string" || skill.description === "")
      throw new RepriseError("BAD_OPTIONS", `a2a: skills[${at}].description: expected a text.`);
    return { ...skill, id };
  });
  const twice = skills.find(({ id }, at) => skills.findIndex((one) => one.id === id) !== at);
  if (twice !== undefined) throw new RepriseError("BAD_OPTIONS", `a2a: skills: ${twice.id} is there twice.`);
  return skills;
}

const MODES = ["application/json", "text/plain"];

/** `url`: where the agent takes messages. */
export function agentCard(options: A2AOptions, skills: readonly KnownSkill[], url: string): AgentCard {
  const { name, description, version = "1.0.0", provider, documentationUrl } = options;
  return {
    name,
    description,
    version,
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", tenant: "", protocolVersion: A2A_PROTOCOL_VERSION }],
    provider: provider === undefined ? undefined : { ...provider },
    documentationUrl,
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {
      token: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { description: "A token of the server.", scheme: "Bearer", bearerFormat: "" },
        },
      },
    },
    securityRequirements: [{ schemes: { token: { list: [] } } }],
    defaultInputModes: MODES,
    defaultOutputModes: MODES,
    skills: skills.map((skill) => ({
      id: skill.id,
      name: skill.name ?? skill.id,
      description: skill.description,
      tags: [...(skill.tags ?? [])],
      examples: [...(skill.examples ?? [])],
      inputModes: MODES,
      outputModes: MODES,
      securityRequirements: [],
    })),
    signatures: [],
  };
}
