//! The values of nodes, with the names that they may have at their place.

use std::str::FromStr;

use super::nearest;
use super::nodes::NodeReader;
use super::problems::LoadFault;
use super::source::TaskSource;
use ce_model::expand::ScopeId;
use ce_model::task::name::NameError;
use ce_model::task::template::Template;
use ce_model::task::workflow::{InputId, Node};

impl<S: TaskSource> NodeReader<'_, '_, S> {
    pub(super) fn input(&mut self, scope: ScopeId, name: &str) -> Result<Option<Node>, LoadFault> {
        let Some(inputs) = self.inputs else {
            return Ok(None);
        };
        if let Some(at) = inputs.iter().position(|input| input.as_str() == name) {
            return Ok(Some(Node::Input(InputId::at(at))));
        }
        if let Some(bound) = self.scopes.find(scope, name) {
            return Ok(Some(Node::Bound(bound)));
        }
        let names = inputs.iter().map(ToString::to_string).chain(self.scopes.names(scope));
        let nearest = nearest(name, &names.collect::<Vec<_>>());
        Err(LoadFault::NoInput { name: name.to_owned(), nearest })
    }

    pub(super) fn file(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        path: &str,
    ) -> Result<Option<Node>, LoadFault> {
        let Some(path) = self.template(dir, scope, path)? else { return Ok(None) };
        let file = self.files.find(self.library.source, path, self.findings)?;
        Ok(file.map(Node::File))
    }

    /// Parses a value in which names stand for their texts: those of inputs, and those that are bound in the scope.
    /// Returns `None` if it may have some, and the task's inputs are not known.
    pub(super) fn template<T>(
        &mut self,
        dir: &S::Dir,
        scope: ScopeId,
        value: &str,
    ) -> Result<Option<Template<T>>, LoadFault>
    where
        T: AsRef<str> + FromStr<Err = NameError>,
    {
        let written: T = value.parse().map_err(LoadFault::Name)?;
        let Some(inputs) = self.inputs else {
            return Ok((!value.contains('{')).then(|| written.into()));
        };
        let place = self.library.source.place(dir);
        let number = |name: &str| self.scopes.number(scope, inputs, name);
        Ok(Some(Template::new(written, number, &place)))
    }
}
